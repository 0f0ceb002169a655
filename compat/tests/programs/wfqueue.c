/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The older wait-free queue, with its dummy node: superseded by wfcqueue, still exported and still used.
 */
#define CDS_WFQ_DEPRECATED
#include "check.h"
#include <urcu/wfqueue.h>

struct item {
	struct cds_wfq_node node;
	long value;
	int producer;
};

static void first_in_first_out(void)
{
	struct cds_wfq_queue queue;
	struct item items[4];

	cds_wfq_init(&queue);
	CHECK(cds_wfq_dequeue_blocking(&queue) == NULL);
	for (int round = 0; round < 3; round++) {
		for (int i = 0; i < 4; i++) {
			cds_wfq_node_init(&items[i].node);
			cds_wfq_enqueue(&queue, &items[i].node);
		}
		for (int i = 0; i < 4; i++)
			CHECK((i % 2 ? __cds_wfq_dequeue_blocking(&queue) : cds_wfq_dequeue_blocking(&queue))
			      == &items[i].node);
		CHECK(cds_wfq_dequeue_blocking(&queue) == NULL);
		CHECK(__cds_wfq_dequeue_blocking(&queue) == NULL);
	}
	cds_wfq_destroy(&queue);
}

enum { PRODUCERS = 3, EACH = 10000 };

static struct cds_wfq_queue shared;
static struct item *all;

static void *enqueues(void *argument)
{
	int producer = (int)(intptr_t)argument;
	struct item *items = all + producer * EACH;

	for (long i = 0; i < EACH; i++) {
		items[i].value = i;
		items[i].producer = producer;
		cds_wfq_node_init(&items[i].node);
		cds_wfq_enqueue(&shared, &items[i].node);
	}
	return NULL;
}

static void among_threads(void)
{
	pthread_t threads[PRODUCERS];
	long seen[PRODUCERS], taken = 0;

	all = calloc(PRODUCERS * EACH, sizeof(struct item));
	CHECK(all != NULL);
	cds_wfq_init(&shared);
	for (int i = 0; i < PRODUCERS; i++) {
		seen[i] = -1;
		threads[i] = thread_start(enqueues, (void *)(intptr_t)i);
	}
	while (taken < PRODUCERS * EACH) {
		struct item *item = (struct item *)cds_wfq_dequeue_blocking(&shared);

		if (!item) {
			sched_yield();
			continue;
		}
		CHECK_EQUAL(item->value, seen[item->producer] + 1);
		seen[item->producer] = item->value;
		taken++;
	}
	for (int i = 0; i < PRODUCERS; i++)
		thread_end(threads[i]);
	CHECK(cds_wfq_dequeue_blocking(&shared) == NULL);
	cds_wfq_destroy(&shared);
	free(all);
}

CASES(
	CASE(first_in_first_out),
	CASE(among_threads),
)
