/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The flavour that -DFLAVOR_MEMB and the like name, by the short names (rcu_read_lock ...). */
#if defined(FLAVOR_MEMB)
#include <urcu/urcu-memb.h>
#include <urcu/map/urcu-memb.h>
#elif defined(FLAVOR_MB)
#include <urcu/urcu-mb.h>
#include <urcu/map/urcu-mb.h>
#elif defined(FLAVOR_QSBR)
#include <urcu/urcu-qsbr.h>
#include <urcu/map/urcu-qsbr.h>
#elif defined(FLAVOR_BP)
#include <urcu/urcu-bp.h>
#include <urcu/map/urcu-bp.h>
#else
#error "compile with -DFLAVOR_MEMB, _MB, _QSBR or _BP"
#endif
