/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour signal: as memb. liburcu fences by signals there, and has given it up since; for
 * programs that have not.
 *
 * Names begin with urcu_signal_; with URCU_API_MAP, as <urcu.h> has it, the short ones
 * (rcu_read_lock) mean this flavour as well. Readers are calls into the library, or with
 * URCU_INLINE_SMALL_FUNCTIONS or _LGPL_SOURCE inlined: a nanosecond. These headers are MIT OR
 * Apache-2.0: either choice is open to programs under any licence.
 */
#ifndef _URCU_SIGNAL_H
#define _URCU_SIGNAL_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/pointer.h>
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
/* Sections nest; read_ongoing is not 0 inside one. */
extern void urcu_signal_read_lock(void);
extern void urcu_signal_read_unlock(void);
extern int urcu_signal_read_ongoing(void);
#endif

/*
 * Waits until every section that is running now has ended. Not from inside a section: that would
 * wait for ever, and ends the program.
 */
extern void urcu_signal_synchronize_rcu(void);

/*
 * Before a thread's first section, and after its last one. The second one says so and ends the
 * program if the thread is in a section.
 */
extern void urcu_signal_register_thread(void);
extern void urcu_signal_unregister_thread(void);

/* For constructors that run before the library's own. */
extern void urcu_signal_init(void);

/* QSBR's. Nothing to do here; for programs that are written for any flavour. */
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
#include <urcu/map/urcu-signal.h>
#endif
