/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A queue of structures with embedded links, lock-free on both sides (Michael and
 * Scott, PODC 1996, with grace periods in place of counted pointers). Both sides run inside a
 * section; an element that was taken out is freed or reused after a grace period.
 */
#ifndef _URCU_RCULFQUEUE_H
#define _URCU_RCULFQUEUE_H

#include <stddef.h>
#include <urcu/assert.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rcu_head;
struct cds_lfq_queue_rcu;

/* An element's link: a member of the structure that is queued. */
struct cds_lfq_node_rcu {
	struct cds_lfq_node_rcu *next;
	/* Not 0 for the queue's own elements: it always contains at least one element. */
	int dummy;
};

/* A queue. All of it belongs to the library. */
struct cds_lfq_queue_rcu {
	struct cds_lfq_node_rcu *head, *tail;
	void (*queue_call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head));
};

/* Prepares an element; to be called before it is added. Does not block. */
extern void cds_lfq_node_init_rcu(struct cds_lfq_node_rcu *node);

/*
 * Initialises a queue. queue_call_rcu is the flavour's call_rcu: the queue frees its own elements
 * with it. Allocates; the program ends if there is no memory.
 */
extern void cds_lfq_init_rcu(struct cds_lfq_queue_rcu *q,
		void queue_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head)));

/* Destroys a queue that no thread uses. Returns 0, or -EPERM if it is not empty. */
extern int cds_lfq_destroy_rcu(struct cds_lfq_queue_rcu *q);

/* Adds an element at the end. Inside a section. Lock-free. */
extern void cds_lfq_enqueue_rcu(struct cds_lfq_queue_rcu *q, struct cds_lfq_node_rcu *node);

/*
 * Takes the first element out and returns it, or NULL. Inside a section. Lock-free; may allocate,
 * and queue a callback. The element may be freed, or added again, after a grace period.
 */
extern struct cds_lfq_node_rcu *cds_lfq_dequeue_rcu(struct cds_lfq_queue_rcu *q);

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/rculfqueue.h>
#endif

#endif
