/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The short names for the flavour that the program chooses as for <urcu/urcu.h>. Here it must
 * choose one.
 */
#if defined(RCU_MEMBARRIER)
#include <urcu/map/urcu-memb.h>
#elif defined(RCU_SIGNAL)
#include <urcu/map/urcu-signal.h>
#elif defined(RCU_MB)
#include <urcu/map/urcu-mb.h>
#else
#error "choose a flavour: define RCU_MEMBARRIER, RCU_SIGNAL or RCU_MB"
#endif
