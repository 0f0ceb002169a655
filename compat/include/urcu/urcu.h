/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour that the program chooses before it includes this header: RCU_MEMBARRIER, which is the
 * default, RCU_SIGNAL or RCU_MB. QSBR and bp have their own headers.
 */
#ifndef _URCU_H
#define _URCU_H

#if !defined(RCU_MEMBARRIER) && !defined(RCU_SIGNAL) && !defined(RCU_MB)
#define RCU_MEMBARRIER
#endif

#endif

#if defined(RCU_MEMBARRIER)
#include <urcu/urcu-memb.h>
#elif defined(RCU_SIGNAL)
#include <urcu/urcu-signal.h>
#else
#include <urcu/urcu-mb.h>
#endif
