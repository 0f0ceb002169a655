/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour bp ("bulletproof"): threads need not register. For libraries, to which the threads of
 * their callers do not belong.
 *
 * Names begin with urcu_bp_. With URCU_API_MAP, as <urcu-bp.h> has it, the short ones
 * (rcu_read_lock) mean this flavour as well. Readers are calls into the library; a program that
 * defines URCU_INLINE_SMALL_FUNCTIONS or _LGPL_SOURCE before it includes this has them inlined.
 * These headers are MIT OR Apache-2.0: either choice is open to programs under any licence.
 */
#ifndef _URCU_BP_H
#define _URCU_BP_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <urcu/pointer.h>
#include <urcu/urcu-poll.h>
#include <urcu/map/urcu-bp.h>

#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#include <urcu/static/urcu-bp.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#define urcu_bp_read_lock	_urcu_bp_read_lock
#define urcu_bp_read_unlock	_urcu_bp_read_unlock
#define urcu_bp_read_ongoing	_urcu_bp_read_ongoing
#else
/*
 * Enters a read-side critical section ("section"): what a pointer leads to that is read by
 * rcu_dereference() stays valid until the section ends. Sections nest. By any thread:
 * its first section registers it.
 * Never blocks, never fails; may be called in signal handlers.
 */
extern void urcu_bp_read_lock(void);

/* Leaves the section that was entered last. Never blocks; may be called in signal handlers. */
extern void urcu_bp_read_unlock(void);

/* Returns whether the calling thread is in a section: not 0 if so. */
extern int urcu_bp_read_ongoing(void);
#endif

/* As the macros and functions of <urcu/pointer.h>, under names of bp's own. */
#define urcu_bp_dereference(p)			rcu_dereference(p)
#define urcu_bp_cmpxchg_pointer(p, old, _new)	rcu_cmpxchg_pointer((p), (old), (_new))
#define urcu_bp_xchg_pointer(p, v)		rcu_xchg_pointer((p), (v))
#define urcu_bp_set_pointer(p, v)		rcu_set_pointer((p), (v))

extern void *urcu_bp_dereference_sym(void *p);
extern void *urcu_bp_cmpxchg_pointer_sym(void **p, void *old, void *_new);
extern void *urcu_bp_xchg_pointer_sym(void **p, void *v);
extern void *urcu_bp_set_pointer_sym(void **p, void *v);

/*
 * Waits until every section that is running now has ended: then nothing that was unreachable before
 * the call is in any reader's hands. Blocks. By any thread, registered or not.
 * Not from inside a section, which it would wait for itself: that ends the program.
 */
extern void urcu_bp_synchronize_rcu(void);

/*
 * A grace period that no thread waits for: start_poll has one begin, or take part in the next, and
 * returns its ticket; poll_state returns whether that one has ended, and once true, always true.
 * Neither blocks. By any thread, inside a section or not.
 */
extern struct urcu_gp_poll_state urcu_bp_start_poll_synchronize_rcu(void);
extern bool urcu_bp_poll_state_synchronize_rcu(struct urcu_gp_poll_state state);

/*
 * Around fork(), by the thread that calls it, if its child is to read: before, then in the parent
 * and in the child. No signal handler runs in the calling thread meanwhile.
 */
extern void urcu_bp_before_fork(void);
extern void urcu_bp_after_fork_parent(void);
extern void urcu_bp_after_fork_child(void);

/*
 * Registers the calling thread ahead, so that its first section is as cheap as the others; more
 * than once does no harm. The end of the thread undoes it.
 */
extern void urcu_bp_register_thread(void);

/* What other flavours' threads have to do. Nothing here; for programs that are written for any. */
static __inline__ void urcu_bp_unregister_thread(void)
{
}

static __inline__ void urcu_bp_init(void)
{
}

static __inline__ void urcu_bp_quiescent_state(void)
{
}

static __inline__ void urcu_bp_thread_offline(void)
{
}

static __inline__ void urcu_bp_thread_online(void)
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
#include <urcu/map/urcu-bp.h>
#endif
