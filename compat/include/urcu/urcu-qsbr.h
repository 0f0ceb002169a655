/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour qsbr: sections cost nothing; threads announce quiescent states instead.
 *
 * Names begin with urcu_qsbr_; with URCU_API_MAP, as <urcu-qsbr.h> has it, the short ones
 * (rcu_read_lock) mean this flavour as well. Readers are calls into the library, or with
 * URCU_INLINE_SMALL_FUNCTIONS or _LGPL_SOURCE inlined: a nanosecond. These headers are MIT OR
 * Apache-2.0: either choice is open to programs under any licence.
 */
#ifndef _URCU_QSBR_H
#define _URCU_QSBR_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/pointer.h>
#include <urcu/map/urcu-qsbr.h>

/* Its older name. */
#if defined(RCU_DEBUG) && !defined(DEBUG_RCU)
#define DEBUG_RCU
#endif

#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#include <urcu/static/urcu-qsbr.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#define urcu_qsbr_read_lock	_urcu_qsbr_read_lock
#define urcu_qsbr_read_unlock	_urcu_qsbr_read_unlock
#define urcu_qsbr_read_ongoing	_urcu_qsbr_read_ongoing
#define urcu_qsbr_quiescent_state	_urcu_qsbr_quiescent_state
#define urcu_qsbr_thread_offline	_urcu_qsbr_thread_offline
#define urcu_qsbr_thread_online	_urcu_qsbr_thread_online
#else
/*
 * Sections are a convention here: in the library the two are empty, and with optimisation no call
 * is made; with DEBUG_RCU it is, and says which thread is offline. read_ongoing is not 0 while the thread is
 * online.
 */
extern void urcu_qsbr_read_lock(void);
extern void urcu_qsbr_read_unlock(void);
extern int urcu_qsbr_read_ongoing(void);

#if !defined(DEBUG_RCU) && !defined(CONFIG_RCU_DEBUG)
extern __inline__ __attribute__((__gnu_inline__)) void urcu_qsbr_read_lock(void)
{
}

extern __inline__ __attribute__((__gnu_inline__)) void urcu_qsbr_read_unlock(void)
{
}
#endif

/*
 * Now and then outside of sections; before a thread sleeps, and after: grace periods wait for every
 * thread that is online until it says one of these.
 */
extern void urcu_qsbr_quiescent_state(void);
extern void urcu_qsbr_thread_offline(void);
extern void urcu_qsbr_thread_online(void);
#endif

/*
 * Waits until every section that is running now has ended. The caller is in none, and quiescent by
 * that.
 */
extern void urcu_qsbr_synchronize_rcu(void);

/*
 * Before a thread's first section, and after its last one. It is online from the first on.
 */
extern void urcu_qsbr_register_thread(void);
extern void urcu_qsbr_unregister_thread(void);

#ifdef __cplusplus
}
#endif

/* Under this flavour's names, as the map stands. */
#include <urcu/call-rcu.h>
#include <urcu/defer.h>
#include <urcu/flavor.h>
#include <urcu/urcu-poll.h>

#ifndef URCU_API_MAP
#include <urcu/map/clear.h>
#endif

#endif

/* Included before without the short names, and now with them. */
#if defined(URCU_API_MAP) && !defined(rcu_read_lock)
#include <urcu/map/urcu-qsbr.h>
#endif
