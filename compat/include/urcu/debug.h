/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Assertions in the inlined readers: that a thread is registered, that it leaves no more sections
 * than it has entered. Off, unless the program defines DEBUG_RCU.
 */
#ifndef _URCU_DEBUG_H
#define _URCU_DEBUG_H

#include <assert.h>
#include <urcu/config.h>

#if defined(DEBUG_RCU) || defined(CONFIG_RCU_DEBUG)
#define urcu_assert(cond)	assert(cond)
#else
#define urcu_assert(cond)	((void) 0)
#endif

/* The names of liburcu 0.14: the first as above, the second always on, unless NDEBUG is defined. */
#define urcu_assert_debug(cond)	urcu_assert(cond)
#define urcu_posix_assert(cond)	assert(cond)

#endif
