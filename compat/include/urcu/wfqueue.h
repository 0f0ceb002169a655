/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The queue that <urcu/wfcqueue.h> has replaced: head and tail on one line, and a dummy element in
 * between.
 */
#ifndef _URCU_WFQUEUE_H
#define _URCU_WFQUEUE_H

#include <assert.h>
#include <pthread.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Programs that are content with it define this as nothing. */
#ifndef CDS_WFQ_DEPRECATED
#define CDS_WFQ_DEPRECATED	CDS_DEPRECATED("replaced by urcu/wfcqueue.h")
#endif

struct cds_wfq_node {
	struct cds_wfq_node *next;
};

struct cds_wfq_queue {
	struct cds_wfq_node *head, **tail;
	struct cds_wfq_node dummy;
	pthread_mutex_t lock;
};

extern CDS_WFQ_DEPRECATED void cds_wfq_node_init(struct cds_wfq_node *node);
extern CDS_WFQ_DEPRECATED void cds_wfq_init(struct cds_wfq_queue *q);
extern CDS_WFQ_DEPRECATED void cds_wfq_destroy(struct cds_wfq_queue *q);

/* At the end. Wait-free. */
extern CDS_WFQ_DEPRECATED void cds_wfq_enqueue(struct cds_wfq_queue *q, struct cds_wfq_node *node);

/*
 * The first element, taken out, or NULL: under the queue's lock, which it takes; or under the
 * caller's own.
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
