/* liburcu for threads that nobody registers: the first section does. */
#define _LGPL_SOURCE
#define URCU_API_MAP
#include <urcu/urcu-bp.h>

#define NAME(x) rivals_bp_##x
#include "flavour.h"
