/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Assertions in the inlined readers: that a thread is registered, that it leaves no more sections
 * than it has entered. Off, unless the program defines DEBUG_RCU.
 */
#ifndef _URCU_DEBUG_H
#define _URCU_DEBUG_H

#include <urcu/assert.h>

/* The name that urcu_assert_debug() had up to liburcu 0.13. */
#define urcu_assert(cond)	urcu_assert_debug(cond)

#endif
