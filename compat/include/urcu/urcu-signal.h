/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour signal: as memb. liburcu sent signals there, and has given it up in 0.15; it is here
 * for programs that were written for it. It needs a kernel with membarrier(2).
 *
 * Names begin with urcu_signal_. With URCU_API_MAP, as <urcu.h> has it, the short ones
 * (rcu_read_lock) mean this flavour as well. Readers are calls into the library; a program that
 * defines URCU_INLINE_SMALL_FUNCTIONS or _LGPL_SOURCE before it includes this has them inlined.
 * These headers are MIT OR Apache-2.0: either choice is open to programs under any licence.
 */
#ifndef _URCU_SIGNAL_H
#define _URCU_SIGNAL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <urcu/pointer.h>
#include <urcu/urcu-poll.h>
#include <urcu/map/urcu-signal.h>

#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#include <urcu/static/urcu-signal.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#define urcu_signal_read_lock	_urcu_signal_read_lock
#define urcu_signal_read_unlock	_urcu_signal_read_unlock
#define urcu_signal_read_ongoing	_urcu_signal_read_ongoing
#else
/*
 * Enters a read-side critical section ("section"): what a pointer leads to that is read by
 * rcu_dereference() stays valid until the section ends. Sections nest. By registered threads.
 * Never blocks, never fails; may be called in signal handlers.
 */
extern void urcu_signal_read_lock(void);

/* Leaves the section that was entered last. Never blocks; may be called in signal handlers. */
extern void urcu_signal_read_unlock(void);

/* Returns whether the calling thread is in a section: not 0 if so. */
extern int urcu_signal_read_ongoing(void);
#endif

/*
 * Waits until every section that is running now has ended: then nothing that was unreachable before
 * the call is in any reader's hands. Blocks. By any thread, registered or not.
 * Not from inside a section, which it would wait for itself: that ends the program.
 */
extern void urcu_signal_synchronize_rcu(void);

/*
 * A grace period that no thread waits for: start_poll has one begin, or take part in the next, and
 * returns its ticket; poll_state returns whether that one has ended, and once true, always true.
 * Neither blocks. By registered threads, inside a section or not.
 */
extern struct urcu_gp_poll_state urcu_signal_start_poll_synchronize_rcu(void);
extern bool urcu_signal_poll_state_synchronize_rcu(struct urcu_gp_poll_state state);

/*
 * Makes the calling thread a reader: before its first section, once. It must not be one already.
 * Blocks for moments.
 */
extern void urcu_signal_register_thread(void);

/*
 * The calling thread reads no more: after its last section, before it ends. (The end of a thread
 * that has not does it, here.)
 */
extern void urcu_signal_unregister_thread(void);

/*
 * The library initialises itself before main(). A constructor of the program's that may run before
 * that calls this first; calling it again does no harm.
 */
extern void urcu_signal_init(void);

/* The end of that, for programs that call it: nothing is left to be undone. */
extern void urcu_signal_exit(void);

/*
 * What only QSBR's threads have to do. Nothing here; for programs that are written for any flavour.
 */
static __inline__ void urcu_signal_quiescent_state(void)
{
}

static __inline__ void urcu_signal_thread_offline(void)
{
}

static __inline__ void urcu_signal_thread_online(void)
{
}

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
#include <urcu/map/urcu-signal.h>
#endif
