/* liburcu's default flavour: readers without fences, grace periods with membarrier. */
#define _LGPL_SOURCE
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#define NAME(x) rivals_memb_##x
#include "flavour.h"
#include "table.h"
