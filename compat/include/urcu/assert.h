/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Assertions, as liburcu 0.14 and later name them. What is asserted has to compile even where it is
 * not looked at.
 */
#ifndef _URCU_ASSERT_H
#define _URCU_ASSERT_H

#include <assert.h>
#include <urcu/config.h>

/* Aborts, and says where, if cond is false; does nothing if the program defines NDEBUG. */
#ifdef NDEBUG
#define urcu_posix_assert(cond)	((void) sizeof((cond) ? 1 : 0))
#else
#define urcu_posix_assert(cond)	assert(cond)
#endif

/* The same where the program defines DEBUG_RCU; else it does nothing. */
#if defined(DEBUG_RCU) || defined(CONFIG_RCU_DEBUG)
#define urcu_assert_debug(cond)	urcu_posix_assert(cond)
#else
#define urcu_assert_debug(cond)	((void) sizeof((cond) ? 1 : 0))
#endif

#endif
