/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Assertions, under the names of liburcu 0.14 and later. A condition must compile even if it is not
 * evaluated.
 */
#ifndef _URCU_ASSERT_H
#define _URCU_ASSERT_H

#include <assert.h>
#include <urcu/config.h>

/* Aborts, and names the place, if cond is false. Does nothing if the program defines NDEBUG. */
#ifdef NDEBUG
#define urcu_posix_assert(cond)	((void) sizeof((cond) ? 1 : 0))
#else
#define urcu_posix_assert(cond)	assert(cond)
#endif

/* The same if the program defines DEBUG_RCU; otherwise it does nothing. */
#if defined(DEBUG_RCU) || defined(CONFIG_RCU_DEBUG)
#define urcu_assert_debug(cond)	urcu_posix_assert(cond)
#else
#define urcu_assert_debug(cond)	((void) sizeof((cond) ? 1 : 0))
#endif

#endif
