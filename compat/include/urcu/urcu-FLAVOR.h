/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
//@ memb
 * The flavour memb: readers execute no fence and take about a nanosecond; threads that wait for
 * them make up for it with membarrier(2). Choose this one first.
//@ mb
 * The flavour mb: readers execute two full fences each, and need nothing of the kernel.
//@ signal
 * The flavour signal: like memb. liburcu sent signals here, and dropped the flavour in 0.15; it
 * exists for programs written for it. It needs a kernel with membarrier(2).
//@ qsbr
 * The flavour qsbr: sections cost nothing; threads announce quiescent states instead. For programs
 * whose threads can do so.
//@ bp
 * The flavour bp ("bulletproof"): threads need not register. For libraries, which do not control
 * their callers' threads.
//@ all
 *
//@ memb mb signal
 * Names begin with urcu_@flavor@_. With URCU_API_MAP, as <urcu.h> has it, the short ones
//@ qsbr bp
 * Names begin with urcu_@flavor@_. With URCU_API_MAP, as <urcu-@flavor@.h> has it, the short ones
//@ all
 * (rcu_read_lock) mean this flavour as well. Readers are calls into the library; a program that
 * defines URCU_INLINE_SMALL_FUNCTIONS or _LGPL_SOURCE before it includes this has them inlined.
 * These headers are MIT OR Apache-2.0: either choice is open to programs under any licence.
 */
#ifndef _URCU_@FLAVOR@_H
#define _URCU_@FLAVOR@_H

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <urcu/pointer.h>
#include <urcu/urcu-poll.h>
#include <urcu/map/urcu-@flavor@.h>

//@ qsbr
/* An older name. */
#if defined(RCU_DEBUG) && !defined(DEBUG_RCU)
#define DEBUG_RCU
#endif

//@ all
#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#include <urcu/static/urcu-@flavor@.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

#if defined(_LGPL_SOURCE) || defined(URCU_INLINE_SMALL_FUNCTIONS)
#define urcu_@flavor@_read_lock	_urcu_@flavor@_read_lock
#define urcu_@flavor@_read_unlock	_urcu_@flavor@_read_unlock
#define urcu_@flavor@_read_ongoing	_urcu_@flavor@_read_ongoing
//@ qsbr
#define urcu_@flavor@_quiescent_state	_urcu_@flavor@_quiescent_state
#define urcu_@flavor@_thread_offline	_urcu_@flavor@_thread_offline
#define urcu_@flavor@_thread_online	_urcu_@flavor@_thread_online
//@ all
#else
//@ memb mb bp signal
/*
 * Enters a read-side critical section ("section"): an object whose pointer is loaded with
//@ memb mb signal
 * rcu_dereference() stays valid until the section ends. Sections nest. By registered threads.
//@ bp
 * rcu_dereference() stays valid until the section ends. Sections nest. By any thread:
 * its first section registers it.
//@ memb mb bp signal
 * Never blocks, never fails; may be called in signal handlers.
 */
extern void urcu_@flavor@_read_lock(void);

/* Leaves the section that was entered last. Never blocks; may be called in signal handlers. */
extern void urcu_@flavor@_read_unlock(void);

/* Returns whether the calling thread is in a section: not 0 if so. */
extern int urcu_@flavor@_read_ongoing(void);
//@ qsbr
/*
 * Mark the beginning and end of a section for whoever reads the program: a thread is in a section
 * whenever it is online. With optimisation these compile to no call, unless the program defines
 * DEBUG_RCU: then the library reports a thread that is offline.
 */
extern void urcu_@flavor@_read_lock(void);
extern void urcu_@flavor@_read_unlock(void);

/* Returns whether the calling thread is online, and so may be in a section: not 0 if so. */
extern int urcu_@flavor@_read_ongoing(void);

#if !defined(DEBUG_RCU) && !defined(CONFIG_RCU_DEBUG)
extern __inline__ __attribute__((__gnu_inline__)) void urcu_@flavor@_read_lock(void)
{
}

extern __inline__ __attribute__((__gnu_inline__)) void urcu_@flavor@_read_unlock(void)
{
}
#endif

/*
 * Announces that the calling thread, which is online, holds no reference now. Every online thread
 * must call it now and then, outside of sections: grace periods wait for that. Does not block.
 */
extern void urcu_@flavor@_quiescent_state(void);

/*
 * Announces that the calling thread reads nothing until it is online again, for example before it
 * blocks. Grace periods do not wait for it meanwhile. Neither blocks.
 */
extern void urcu_@flavor@_thread_offline(void);
extern void urcu_@flavor@_thread_online(void);
//@ all
#endif

//@ bp
/* Like the macros and functions of <urcu/pointer.h>, under names of bp's own. */
#define urcu_@flavor@_dereference(p)			rcu_dereference(p)
#define urcu_@flavor@_cmpxchg_pointer(p, old, _new)	rcu_cmpxchg_pointer((p), (old), (_new))
#define urcu_@flavor@_xchg_pointer(p, v)		rcu_xchg_pointer((p), (v))
#define urcu_@flavor@_set_pointer(p, v)		rcu_set_pointer((p), (v))

extern void *urcu_@flavor@_dereference_sym(void *p);
extern void *urcu_@flavor@_cmpxchg_pointer_sym(void **p, void *old, void *_new);
extern void *urcu_@flavor@_xchg_pointer_sym(void **p, void *v);
extern void *urcu_@flavor@_set_pointer_sym(void **p, void *v);

//@ all
/*
 * Waits until every section in progress has ended: then no reader holds a reference to an object
 * that was unreachable before the call. Blocks. By any thread, registered or not.
//@ memb mb bp signal
 * Not from inside a section, which would deadlock: it aborts the program.
//@ qsbr
 * A registered thread that is online must be in no section; waiting is a quiescent state.
//@ all
 */
extern void urcu_@flavor@_synchronize_rcu(void);

/*
 * Polling for a grace period instead of waiting: start_poll starts one, or joins the next one, and
 * returns its ticket; poll_state returns whether that one has ended, and once true, always true.
//@ memb mb signal
 * Neither blocks. By registered threads, inside a section or not.
//@ qsbr
 * Neither blocks. By registered threads that are online.
//@ bp
 * Neither blocks. By any thread, inside a section or not.
//@ all
 */
extern struct urcu_gp_poll_state urcu_@flavor@_start_poll_synchronize_rcu(void);
extern bool urcu_@flavor@_poll_state_synchronize_rcu(struct urcu_gp_poll_state state);

//@ memb mb signal
/*
 * Makes the calling thread a reader: before its first section, once. It must not be one already.
 * Blocks for moments.
 */
extern void urcu_@flavor@_register_thread(void);

//@ qsbr
/*
 * Makes the calling thread a reader: before its first section, once, and online from then on. It
 * must not be one already. Blocks for moments.
 */
extern void urcu_@flavor@_register_thread(void);

//@ memb mb qsbr signal
/*
 * Unregisters the calling thread: after its last section, before it exits. (In this library, the
 * exit of a thread that has not called it does the same.)
 */
extern void urcu_@flavor@_unregister_thread(void);

//@ memb mb signal
/*
 * The library initialises itself before main(). A constructor in the program that may run earlier
 * must call this first; calling it again is harmless.
 */
extern void urcu_@flavor@_init(void);

//@ memb mb qsbr signal
/* For programs that call it when they end: there is nothing to clean up. */
extern void urcu_@flavor@_exit(void);

//@ bp
/*
 * Call these around fork(), in the thread that calls it, if its child reads: before it, then in the
 * parent and in the child. No signal handler may run in the calling thread meanwhile.
 */
extern void urcu_@flavor@_before_fork(void);
extern void urcu_@flavor@_after_fork_parent(void);
extern void urcu_@flavor@_after_fork_child(void);

/*
 * Registers the calling thread in advance, so that its first section is as cheap as the others;
 * calling it again is harmless. The exit of the thread unregisters it.
 */
extern void urcu_@flavor@_register_thread(void);

/* What threads of other flavours must do. No-ops here, for programs written for any flavour. */
static __inline__ void urcu_@flavor@_unregister_thread(void)
{
}

static __inline__ void urcu_@flavor@_init(void)
{
}

//@ memb mb signal
/*
 * What only threads of qsbr must do. No-ops here, for programs written for any flavour.
 */
//@ memb mb bp signal
static __inline__ void urcu_@flavor@_quiescent_state(void)
{
}

static __inline__ void urcu_@flavor@_thread_offline(void)
{
}

static __inline__ void urcu_@flavor@_thread_online(void)
{
}

//@ all
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

/* Included earlier without the short names, and now with them. */
#if defined(URCU_API_MAP) && !defined(rcu_read_lock)
#include <urcu/map/urcu-@flavor@.h>
#endif
