/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Callbacks: a function that is called, on a worker thread, after a grace period. Under the names
 * of the flavour whose map is in force; declared again for each.
 *
 * Which worker: the calling thread's, if it has one; else its CPU's; else the flavour's
 * default one, which is made when it is needed first.
 */
#ifndef _URCU_CALL_RCU_H
#define _URCU_CALL_RCU_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/wfcqueue.h>

/* For create_call_rcu_data(): the worker is not woken, it looks now and then. */
#define URCU_CALL_RCU_RT	(1U << 0)

/* What a worker's state is made of, in liburcu's own library. Not for create_call_rcu_data(). */
#define URCU_CALL_RCU_RUNNING	(1U << 1)
#define URCU_CALL_RCU_STOP	(1U << 2)
#define URCU_CALL_RCU_STOPPED	(1U << 3)
#define URCU_CALL_RCU_PAUSE	(1U << 4)
#define URCU_CALL_RCU_PAUSED	(1U << 5)

/* A worker. */
struct call_rcu_data;

/*
 * In the structure that is to be freed; nothing is allocated. It is the library's until the
 * callback runs.
 */
struct rcu_head {
	struct cds_wfcq_node next;
	void (*func)(struct rcu_head *head);
};

#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Has func(head) called after a grace period. Neither waits nor allocates. By a registered thread;
 * bp: by any.
 */
extern void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));

/*
 * Waits until all that was queued before has been called. Not from a callback, and not inside a
 * section.
 */
extern void rcu_barrier(void);

/*
 * A worker, bound to a CPU or, with -1, to none. It serves no thread until it is given to a
 * thread or a CPU. call_rcu_data_free() ends it; what it still has goes to the default
 * worker. No thread may be using it: after a grace period since it was taken away from its thread or
 * CPU none is. NULL is ignored, and so is the default worker.
 */
extern struct call_rcu_data *create_call_rcu_data(unsigned long flags, int cpu_affinity);
extern void call_rcu_data_free(struct call_rcu_data *crdp);

/*
 * The default worker, made if there is none yet; a CPU's, a thread's own, or NULL; and
 * whichever serves now.
 */
extern struct call_rcu_data *get_default_call_rcu_data(void);
extern struct call_rcu_data *get_cpu_call_rcu_data(int cpu);
extern struct call_rcu_data *get_thread_call_rcu_data(void);
extern struct call_rcu_data *get_call_rcu_data(void);
extern pthread_t get_call_rcu_thread(struct call_rcu_data *crdp);

/*
 * Give a worker, or with NULL none. For a CPU: 0, or -1 with errno EINVAL (no such one) or
 * EEXIST (it has one).
 */
extern void set_thread_call_rcu_data(struct call_rcu_data *crdp);
extern int set_cpu_call_rcu_data(int cpu, struct call_rcu_data *crdp);

/*
 * A worker for every CPU that has none: 0, or -1 with errno. The second takes them away and
 * frees them.
 */
extern int create_all_cpu_call_rcu_data(unsigned long flags);
extern void free_all_cpu_call_rcu_data(void);

/* Around fork(), by the thread that calls it, if the child will use call_rcu(). */
extern void call_rcu_before_fork(void);
extern void call_rcu_after_fork_parent(void);
extern void call_rcu_after_fork_child(void);

#ifdef __cplusplus
}
#endif
