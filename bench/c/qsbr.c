/* liburcu for readers that announce quiescent states. */
#define _LGPL_SOURCE
#define URCU_API_MAP
#include <urcu/urcu-qsbr.h>

#define NAME(x) rivals_qsbr_##x
#include "flavour.h"
#include "table.h"
