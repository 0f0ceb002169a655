/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The older wait-free queue, with its dummy node: superseded by wfcqueue, still exported and still used. (Among threads
 * it is used in queues/beside.c.)
 */
#define CDS_WFQ_DEPRECATED
#include "check.h"
#include <urcu/wfqueue.h>

CASE(first_in_first_out)
{
	struct cds_wfq_queue queue;
	struct cds_wfq_node nodes[4];

	cds_wfq_init(&queue);
	CHECK(cds_wfq_dequeue_blocking(&queue) == NULL);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			cds_wfq_node_init(&nodes[i]);
			cds_wfq_enqueue(&queue, &nodes[i]);
		}
		for (int i = 0; i < 4; i++)
			CHECK((i % 2 ? __cds_wfq_dequeue_blocking(&queue) : cds_wfq_dequeue_blocking(&queue))
			      == &nodes[i]);
		CHECK(cds_wfq_dequeue_blocking(&queue) == NULL);
		CHECK(__cds_wfq_dequeue_blocking(&queue) == NULL);
	}
	cds_wfq_destroy(&queue);
}
