/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Deferred calls: as callbacks, with a pointer in place of a head, from a queue of the calling
 * thread's own. Under the names of the flavour whose map is in force; declared again for each.
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
 * Has fct(p) called after a grace period. May wait for one itself, if the queue is full: not inside
 * a section.
 */
extern void defer_rcu(void (*fct)(void *p), void *p);

/*
 * Around a thread's use of it. The first is 0, or an error number; the second waits until its calls
 * have been made.
 */
extern int rcu_defer_register_thread(void);
extern void rcu_defer_unregister_thread(void);

/*
 * Wait until all that all threads, or the calling one, have queued has been called. Not inside a
 * section.
 */
extern void rcu_defer_barrier(void);
extern void rcu_defer_barrier_thread(void);

/* At the end of a program, once every thread has unregistered. */
extern void rcu_defer_exit(void);

#ifdef __cplusplus
}
#endif
