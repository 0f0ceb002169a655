/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The queue that <urcu/wfcqueue.h> has replaced: head and tail on one line, and a dummy element in
 * between.
 */
#ifndef _URCU_WFQUEUE_H
#define _URCU_WFQUEUE_H

#include <pthread.h>
#include <urcu/assert.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Programs that are content with it define this as nothing. */
#ifndef CDS_WFQ_DEPRECATED
#define CDS_WFQ_DEPRECATED	CDS_DEPRECATED("replaced by urcu/wfcqueue.h")
#endif

/* An element's link: a member of the structure that is queued. */
struct cds_wfq_node {
	struct cds_wfq_node *next;
};

/* A queue. All of it is the library's. */
struct cds_wfq_queue {
	struct cds_wfq_node *head, **tail;
	struct cds_wfq_node dummy;
	pthread_mutex_t lock;
};

/* Prepares an element; to be called before it is added. Does not block. */
extern CDS_WFQ_DEPRECATED void cds_wfq_node_init(struct cds_wfq_node *node);
/* Begin and end of a queue. At its end no thread uses it, and nothing is in it. */
extern CDS_WFQ_DEPRECATED void cds_wfq_init(struct cds_wfq_queue *q);
extern CDS_WFQ_DEPRECATED void cds_wfq_destroy(struct cds_wfq_queue *q);

/* Adds an element at the end. Wait-free, by any thread, under no lock. */
extern CDS_WFQ_DEPRECATED void cds_wfq_enqueue(struct cds_wfq_queue *q, struct cds_wfq_node *node);

/*
 * Takes the first element out and returns it, or NULL. The first takes the queue's lock; for the
 * second the caller sees to it that no other thread takes. Block, where an element is half added.
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
