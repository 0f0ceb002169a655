/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Callbacks: a function that is called, on a worker thread, after a grace period.
 *
 * A flavour's header includes this, once for each flavour: under its short names `call_rcu` is
 * urcu_memb_call_rcu, for example, and likewise for all functions below.
 *
 * Which worker runs a callback: the one assigned to the calling thread, if there is one; else the
 * one of its current CPU; else the flavour's default worker, which is created when first needed.
 */
#ifndef _URCU_CALL_RCU_H
#define _URCU_CALL_RCU_H

#include <pthread.h>
#include <stdlib.h>
#include <urcu/wfcqueue.h>

/*
 * A flag for create_call_rcu_data(): call_rcu() makes no system call to wake the worker, which
 * looks for callbacks every 10 ms instead.
 */
#define URCU_CALL_RCU_RT	(1U << 0)

/* Bits of a worker's state, in liburcu's own library. Not for create_call_rcu_data(). */
#define URCU_CALL_RCU_RUNNING	(1U << 1)
#define URCU_CALL_RCU_STOP	(1U << 2)
#define URCU_CALL_RCU_STOPPED	(1U << 3)
#define URCU_CALL_RCU_PAUSE	(1U << 4)
#define URCU_CALL_RCU_PAUSED	(1U << 5)

/* A worker: a thread, and the callbacks queued for it. */
struct call_rcu_data;

/*
 * The memory of a callback: a member of the structure to be freed, so that nothing is
 * allocated. It need not be initialised, and belongs to the library until the callback runs. It
 * has to be aligned: the structure is not a packed one.
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
 * Queues func(head) to be called by a worker, once every section in progress has ended. Also inside
 * sections, and in callbacks. By registered threads; bp: by any thread. Allocates nothing. Does
 * not block, unless callbacks are queued faster than they run and the caller is in no section: then
 * it waits for at most 10 ms.
 */
extern void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head));

/*
 * Waits until every callback that any thread has queued so far has been called. Blocks. Not from a
 * callback of the same flavour, which aborts the program, and not inside a section.
 */
extern void rcu_barrier(void);

/*
 * Creates a worker, bound to a CPU or, with -1, to none. flags is 0 or URCU_CALL_RCU_RT. It serves
 * no thread until it is assigned to a thread or to a CPU. If there is no memory for its thread, the
 * program ends.
 */
extern struct call_rcu_data *create_call_rcu_data(unsigned long flags, int cpu_affinity);

/*
 * Stops a worker, and frees it; its remaining callbacks go to the default worker. Waits until
 * the worker's thread runs no callback any more, unless it is called in a section or by a callback.
 * No thread may be using the worker: that is so one grace period after it was unassigned from its
 * thread or CPU. NULL is ignored, and so is the default worker.
 */
extern void call_rcu_data_free(struct call_rcu_data *crdp);

/* Returns the flavour's default worker, and creates it if there is none yet. */
extern struct call_rcu_data *get_default_call_rcu_data(void);

/*
 * Returns the worker of a CPU; NULL if it has none, or if there is no such CPU. It may be used
 * until it is freed: inside a section.
 */
extern struct call_rcu_data *get_cpu_call_rcu_data(int cpu);

/* Returns the worker assigned to the calling thread, or NULL. */
extern struct call_rcu_data *get_thread_call_rcu_data(void);

/* Returns the worker that call_rcu() would choose now. */
extern struct call_rcu_data *get_call_rcu_data(void);

/*
 * Returns a worker's thread. Once it has been asked for, the caller may join it after
 * call_rcu_data_free(), as programs of liburcu 0.13 do.
 */
extern pthread_t get_call_rcu_thread(struct call_rcu_data *crdp);

/*
 * Assigns a worker to the calling thread; with NULL, unassigns it. The worker itself is unchanged.
 */
extern void set_thread_call_rcu_data(struct call_rcu_data *crdp);

/*
 * Assigns a worker to a CPU; with NULL, unassigns it. Returns 0, or a negative error number,
 * also in errno: EINVAL (there is no such CPU), EEXIST (it has a worker already), ENOMEM.
 */
extern int set_cpu_call_rcu_data(int cpu, struct call_rcu_data *crdp);

/*
 * Creates a worker for every CPU that has none. Returns 0, or a negative error number, also in
 * errno.
 */
extern int create_all_cpu_call_rcu_data(unsigned long flags);

/* Unassigns and frees the workers of all CPUs. Blocks for a grace period. */
extern void free_all_cpu_call_rcu_data(void);

/*
 * Call these around fork(), in the thread that calls it, if the child uses call_rcu(): before it,
 * then in the parent and in the child. The child has only the default worker, with all queued
 * callbacks.
 */
extern void call_rcu_before_fork(void);
extern void call_rcu_after_fork_parent(void);
extern void call_rcu_after_fork_child(void);

#ifdef __cplusplus
}
#endif
