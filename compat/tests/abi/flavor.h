/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The short names (rcu_read_lock) of the flavour that the command line names. */
#define URCU_API_MAP
#if defined(FLAVOR_MEMB)
# include <urcu/urcu-memb.h>
#elif defined(FLAVOR_MB)
# include <urcu/urcu-mb.h>
#elif defined(FLAVOR_QSBR)
# include <urcu/urcu-qsbr.h>
#elif defined(FLAVOR_BP)
# include <urcu/urcu-bp.h>
#elif defined(FLAVOR_SIGNAL)
# include <urcu/urcu-signal.h>
#else
# error "no flavour chosen"
#endif
