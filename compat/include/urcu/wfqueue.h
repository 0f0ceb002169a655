/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The queue that <urcu/wfcqueue.h> replaces: its head and tail share a cache line, and it has a
 * dummy element.
 */
#ifndef _URCU_WFQUEUE_H
#define _URCU_WFQUEUE_H

#include <pthread.h>
#include <urcu/assert.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program that defines this as nothing uses the queue without warnings. */
#ifndef CDS_WFQ_DEPRECATED
#define CDS_WFQ_DEPRECATED	CDS_DEPRECATED("replaced by urcu/wfcqueue.h")
#endif

/* An element's link: a member of the structure that is queued. */
struct cds_wfq_node {
	struct cds_wfq_node *next;
};

/* A queue. All of it belongs to the library. */
struct cds_wfq_queue {
	struct cds_wfq_node *head, **tail;
	struct cds_wfq_node dummy;
	pthread_mutex_t lock;
};

/* Prepares an element; to be called before it is added. Does not block. */
extern CDS_WFQ_DEPRECATED void cds_wfq_node_init(struct cds_wfq_node *node);
/* Initialise and destroy a queue. Destroy it only when it is empty and no thread uses it. */
extern CDS_WFQ_DEPRECATED void cds_wfq_init(struct cds_wfq_queue *q);
extern CDS_WFQ_DEPRECATED void cds_wfq_destroy(struct cds_wfq_queue *q);

/* Adds an element at the end. Wait-free, by any thread, under no lock. */
extern CDS_WFQ_DEPRECATED void cds_wfq_enqueue(struct cds_wfq_queue *q, struct cds_wfq_node *node);

/*
 * Take the first element and return it, or NULL. The first function takes the queue's lock; callers
 * of the second ensure that no other thread takes. Both wait for an element that is only half
 * added.
 */
extern CDS_WFQ_DEPRECATED struct cds_wfq_node *cds_wfq_dequeue_blocking(struct cds_wfq_queue *q);
extern CDS_WFQ_DEPRECATED struct cds_wfq_node *__cds_wfq_dequeue_blocking(struct cds_wfq_queue *q);

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/wfqueue.h>
#endif

#endif
