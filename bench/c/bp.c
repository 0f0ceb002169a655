/* liburcu for threads that do not register: the first section does it. */
#define _LGPL_SOURCE
#define URCU_API_MAP
#include <urcu/urcu-bp.h>

#define NAME(x) rivals_bp_##x
#include "flavour.h"
