/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The lock-free queue under RCU, whose dummy nodes go back through the flavour's call_rcu.
 */
#include "flavor.h"
#include <urcu/rculfqueue.h>

struct item {
	struct cds_lfq_node_rcu node;
	long value;
	int producer;
	struct rcu_head head;
};

READER_CASE(first_in_first_out)
{
	struct cds_lfq_queue_rcu queue;
	struct item items[4];

	cds_lfq_init_rcu(&queue, call_rcu);
	rcu_read_lock();
	CHECK(cds_lfq_dequeue_rcu(&queue) == NULL);
	for (int i = 0; i < 4; i++) {
		cds_lfq_node_init_rcu(&items[i].node);
		cds_lfq_enqueue_rcu(&queue, &items[i].node);
	}
	CHECK(cds_lfq_dequeue_rcu(&queue) == &items[0].node);
	rcu_read_unlock();
	/* Not empty: not destroyed, and as good as before. */
	CHECK_EQUAL(cds_lfq_destroy_rcu(&queue), -EPERM);
	rcu_read_lock();
	for (int i = 1; i < 4; i++)
		CHECK(cds_lfq_dequeue_rcu(&queue) == &items[i].node);
	CHECK(cds_lfq_dequeue_rcu(&queue) == NULL);
	CHECK(cds_lfq_dequeue_rcu(&queue) == NULL);
	rcu_read_unlock();
	rcu_quiescent_state();
	CHECK_EQUAL(cds_lfq_destroy_rcu(&queue), 0);
	rcu_barrier();
	/* Never used. */
	cds_lfq_init_rcu(&queue, call_rcu);
	CHECK_EQUAL(cds_lfq_destroy_rcu(&queue), 0);
}

enum { PRODUCERS = 3, CONSUMERS = 2, EACH = 10000 };

static struct cds_lfq_queue_rcu shared;
static long taken, freed;

static void item_free(struct rcu_head *head)
{
	struct item *item = caa_container_of(head, struct item, head);

	memset(item, 0xff, sizeof(*item));
	free(item);
	count_add(&freed, 1);
}

static void enqueues(void *argument)
{
	for (long i = 0; i < EACH; i++) {
		struct item *item = malloc(sizeof(*item));

		CHECK(item != NULL);
		item->value = i;
		item->producer = (int)(intptr_t)argument;
		cds_lfq_node_init_rcu(&item->node);
		rcu_read_lock();
		cds_lfq_enqueue_rcu(&shared, &item->node);
		rcu_read_unlock();
		rcu_quiescent_state();
	}
}

static void dequeues(void *argument)
{
	long seen[PRODUCERS];

	(void)argument;
	for (int i = 0; i < PRODUCERS; i++)
		seen[i] = -1;
	while (count_of(&taken) < PRODUCERS * EACH) {
		rcu_read_lock();
		struct cds_lfq_node_rcu *node = cds_lfq_dequeue_rcu(&shared);
		rcu_read_unlock();
		if (node) {
			struct item *item = caa_container_of(node, struct item, node);

			CHECK(item->value > seen[item->producer]);
			seen[item->producer] = item->value;
			call_rcu(&item->head, item_free);
			count_add(&taken, 1);
		} else {
			sched_yield();
		}
		rcu_quiescent_state();
	}
}

CASE(among_threads)
{
	pthread_t producers[PRODUCERS], consumers[CONSUMERS];

	taken = 0;
	freed = 0;
	cds_lfq_init_rcu(&shared, call_rcu);
	for (intptr_t i = 0; i < PRODUCERS; i++)
		producers[i] = reader_start(enqueues, (void *)i);
	for (int i = 0; i < CONSUMERS; i++)
		consumers[i] = reader_start(dequeues, NULL);
	for (int i = 0; i < PRODUCERS; i++)
		thread_end(producers[i]);
	for (int i = 0; i < CONSUMERS; i++)
		thread_end(consumers[i]);
	/*
	 * Two consumers that found the last node may each have put a dummy behind it: stock keeps
	 * both until the next dequeue.
	 */
	rcu_register_thread();
	rcu_read_lock();
	CHECK(cds_lfq_dequeue_rcu(&shared) == NULL);
	rcu_read_unlock();
	rcu_unregister_thread();
	CHECK_EQUAL(cds_lfq_destroy_rcu(&shared), 0);
	rcu_barrier();
	CHECK_EQUAL(count_of(&freed), PRODUCERS * EACH);
}

/*
 * Where Debian's headers have the consumer inlined it is liburcu's own, also on our libraries, and leaves the tail where
 * it is.
 */
#ifndef cds_lfq_dequeue_rcu
/*
 * A producer that was stopped after it has linked its node, and has not moved the tail: a consumer takes the node before it does.
 * A section that begins afterwards would find that node there, whose grace period does not wait for the section.
 */
READER_CASE(what_is_taken_is_not_at_the_tail)
{
	struct cds_lfq_queue_rcu queue;
	struct item items[3];

	cds_lfq_init_rcu(&queue, call_rcu);
	for (int i = 0; i < 3; i++)
		cds_lfq_node_init_rcu(&items[i].node);
	rcu_read_lock();
	cds_lfq_enqueue_rcu(&queue, &items[0].node);
	cds_lfq_enqueue_rcu(&queue, &items[1].node);
	CHECK(cds_lfq_dequeue_rcu(&queue) == &items[0].node);
	CHECK(queue.tail == &items[1].node);
	__atomic_store_n(&items[1].node.next, &items[2].node, __ATOMIC_SEQ_CST);
	CHECK(cds_lfq_dequeue_rcu(&queue) == &items[1].node);
	CHECK(__atomic_load_n(&queue.tail, __ATOMIC_SEQ_CST) == &items[2].node);
	CHECK(cds_lfq_dequeue_rcu(&queue) == &items[2].node);
	CHECK(cds_lfq_dequeue_rcu(&queue) == NULL);
	rcu_read_unlock();
	rcu_quiescent_state();
	CHECK_EQUAL(cds_lfq_destroy_rcu(&queue), 0);
	rcu_barrier();
}
#endif
