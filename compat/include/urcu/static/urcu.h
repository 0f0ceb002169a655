/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The inlined readers of the flavour that the program has chosen, as in <urcu/urcu.h>. */
#ifndef _URCU_STATIC_H
#define _URCU_STATIC_H

#if !defined(RCU_MEMBARRIER) && !defined(RCU_MB) && !defined(RCU_SIGNAL)
#define RCU_MEMBARRIER
#endif

#if defined(RCU_MEMBARRIER)
#include <urcu/static/urcu-memb.h>
#elif defined(RCU_SIGNAL)
#include <urcu/static/urcu-signal.h>
#else
#include <urcu/static/urcu-mb.h>
#endif

#endif
