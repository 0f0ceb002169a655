/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Deferred calls: as callbacks, with a pointer in place of a member of the structure.
 *
 * A flavour's header includes this, once for each flavour: under its short names `defer_rcu` is
 * urcu_memb_defer_rcu, for example, and likewise for all functions below.
 */
#ifndef _URCU_DEFER_H
#define _URCU_DEFER_H

#include <pthread.h>
#include <stdlib.h>

#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Queues fct(p) to be called once every section in progress has ended; the calls of one thread are
 * made in order: by a later defer_rcu() of the thread itself, once some hundreds are queued, by a
 * barrier, or by a thread of the library. So hold no lock that fct takes. Not inside a section: it
 * may wait for room, for at most 10 ms.
 */
extern void defer_rcu(void (*fct)(void *p), void *p);

/*
 * Before a thread's first defer_rcu(), and after its last one. The first returns 0, or an error
 * number if there is no memory; the second blocks until the thread's calls have been made.
 */
extern int rcu_defer_register_thread(void);
extern void rcu_defer_unregister_thread(void);

/* Waits until all calls deferred so far, by any thread, have been made. Not inside a section. */
extern void rcu_defer_barrier(void);

/* Waits until all calls deferred by the calling thread have been made. Not inside a section. */
extern void rcu_defer_barrier_thread(void);

/* At the end of a program, once every thread has unregistered. Blocks until all calls are made. */
extern void rcu_defer_exit(void);

#ifdef __cplusplus
}
#endif
