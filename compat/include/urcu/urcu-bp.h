/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour bp ("bulletproof"): threads need not be registered. For libraries whose callers'
 * threads are not theirs.
 *
 * Names begin with urcu_bp_; with URCU_API_MAP, as <urcu-bp.h> has it, the short ones
 * (rcu_read_lock) mean this flavour as well. Readers are calls into the library, or with
 * URCU_INLINE_SMALL_FUNCTIONS or _LGPL_SOURCE inlined: a nanosecond. These headers are MIT OR
 * Apache-2.0: either choice is open to programs under any licence.
 */
#ifndef _URCU_BP_H
#define _URCU_BP_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/pointer.h>
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
/* Sections nest; read_ongoing is not 0 inside one. */
extern void urcu_bp_read_lock(void);
extern void urcu_bp_read_unlock(void);
extern int urcu_bp_read_ongoing(void);
#endif

#define urcu_bp_dereference(p)			rcu_dereference(p)
#define urcu_bp_cmpxchg_pointer(p, old, _new)	rcu_cmpxchg_pointer((p), (old), (_new))
#define urcu_bp_xchg_pointer(p, v)		rcu_xchg_pointer((p), (v))
#define urcu_bp_set_pointer(p, v)		rcu_set_pointer((p), (v))

extern void *urcu_bp_dereference_sym(void *p);
extern void *urcu_bp_cmpxchg_pointer_sym(void **p, void *old, void *_new);
extern void *urcu_bp_xchg_pointer_sym(void **p, void *v);
extern void *urcu_bp_set_pointer_sym(void **p, void *v);

/*
 * Waits until every section that is running now has ended. Not from inside a section: that would
 * wait for ever, and ends the program.
 */
extern void urcu_bp_synchronize_rcu(void);

/* Around fork(), by the thread that calls it: before, then in the parent and in the child. */
extern void urcu_bp_before_fork(void);
extern void urcu_bp_after_fork_parent(void);
extern void urcu_bp_after_fork_child(void);

/*
 * May be called ahead, so that a thread's first section is as cheap as the others. The end of a
 * thread undoes it.
 */
extern void urcu_bp_register_thread(void);

/* Others'. Nothing to do here; for programs that are written for any flavour. */
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
#include <urcu/map/urcu-bp.h>
#endif
