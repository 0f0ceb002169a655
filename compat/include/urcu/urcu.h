/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour that the program chooses before it includes this: RCU_MEMBARRIER (and so if it
 * chooses none), RCU_SIGNAL or RCU_MB. QSBR and bp have headers of their own.
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
