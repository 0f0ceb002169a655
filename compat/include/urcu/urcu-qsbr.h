/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour qsbr: sections cost nothing; threads announce quiescent states instead. For programs
 * whose threads can.
 *
 * Names begin with urcu_qsbr_. With URCU_API_MAP, as <urcu-qsbr.h> has it, the short ones
 * (rcu_read_lock) mean this flavour as well. Readers are calls into the library; a program that
 * defines URCU_INLINE_SMALL_FUNCTIONS or _LGPL_SOURCE before it includes this has them inlined.
 * These headers are MIT OR Apache-2.0: either choice is open to programs under any licence.
 */
#ifndef _URCU_QSBR_H
#define _URCU_QSBR_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <urcu/pointer.h>
#include <urcu/urcu-poll.h>
#include <urcu/map/urcu-qsbr.h>

/* An older name. */
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
 * Begin and end of a section, for the reader of the program: a thread is in one wherever it is
 * online. With optimisation no call is made, unless the program defines DEBUG_RCU: then the library
 * says which thread is offline.
 */
extern void urcu_qsbr_read_lock(void);
extern void urcu_qsbr_read_unlock(void);

/* Returns whether the calling thread is online, and so may be in a section: not 0 if so. */
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
 * Says that the calling thread, which is online, holds no reference now. Every online thread has to
 * call it now and then, outside of sections: grace periods wait for that. Does not block.
 */
extern void urcu_qsbr_quiescent_state(void);

/*
 * Says that the calling thread reads nothing until it is online again: before it blocks, say. Grace
 * periods do not wait for it meanwhile. Neither blocks.
 */
extern void urcu_qsbr_thread_offline(void);
extern void urcu_qsbr_thread_online(void);
#endif

/*
 * Waits until every section that is running now has ended: then nothing that was unreachable before
 * the call is in any reader's hands. Blocks. By any thread, registered or not.
 * A registered thread that is online must be in no section; to wait is a quiescent state.
 */
extern void urcu_qsbr_synchronize_rcu(void);

/*
 * A grace period that no thread waits for: start_poll has one begin, or take part in the next, and
 * returns its ticket; poll_state returns whether that one has ended, and once true, always true.
 * Neither blocks. By registered threads that are online.
 */
extern struct urcu_gp_poll_state urcu_qsbr_start_poll_synchronize_rcu(void);
extern bool urcu_qsbr_poll_state_synchronize_rcu(struct urcu_gp_poll_state state);

/*
 * Makes the calling thread a reader: before its first section, once, and online from then on. It
 * must not be one already. Blocks for moments.
 */
extern void urcu_qsbr_register_thread(void);

/*
 * The calling thread reads no more: after its last section, before it ends. (The end of a thread
 * that has not does it, here.)
 */
extern void urcu_qsbr_unregister_thread(void);

/* For programs that call it at their end: nothing is left to be undone. */
extern void urcu_qsbr_exit(void);

#ifdef __cplusplus
}
#endif

/* Callbacks, deferred calls, and the flavour as a structure, under this flavour's names. */
#include <urcu/call-rcu.h>
#include <urcu/defer.h>
#include <urcu/flavor.h>

#ifndef URCU_API_MAP
#include <urcu/map/clear.h>
#endif

#endif

/* Included before without the short names, and now with them. */
#if defined(URCU_API_MAP) && !defined(rcu_read_lock)
#include <urcu/map/urcu-qsbr.h>
#endif
