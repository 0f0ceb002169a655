/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A queue of structures that hold their links themselves, lock-free on both sides (Michael and
 * Scott, PODC 1996, with grace periods in place of counted pointers). Both sides inside a section;
 * an element that has been taken out is freed or used again after a grace period.
 */
#ifndef _URCU_RCULFQUEUE_H
#define _URCU_RCULFQUEUE_H

#include <assert.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

struct rcu_head;
struct cds_lfq_queue_rcu;

struct cds_lfq_node_rcu {
	struct cds_lfq_node_rcu *next;
	/* One of the queue's own, which keep it from being without any. */
	int dummy;
};

struct cds_lfq_queue_rcu {
	struct cds_lfq_node_rcu *head, *tail;
	void (*queue_call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head));
};

extern void cds_lfq_node_init_rcu(struct cds_lfq_node_rcu *node);

/* The second is the flavour's call_rcu: the queue frees its own elements by it. */
extern void cds_lfq_init_rcu(struct cds_lfq_queue_rcu *q,
		void queue_call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *head)));

/* 0, or -EPERM if there is something in it. No thread may be using it. */
extern int cds_lfq_destroy_rcu(struct cds_lfq_queue_rcu *q);

/* Inside a section. */
extern void cds_lfq_enqueue_rcu(struct cds_lfq_queue_rcu *q, struct cds_lfq_node_rcu *node);

/* The first element, taken out, or NULL. Inside a section. */
extern struct cds_lfq_node_rcu *cds_lfq_dequeue_rcu(struct cds_lfq_queue_rcu *q);

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/rculfqueue.h>
#endif

#endif
