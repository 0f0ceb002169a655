/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The wait-free concurrent queue: every function with every answer it can give, first alone, then among threads.
 */
#include "check.h"
#include <urcu/wfcqueue.h>
#include <urcu/compiler.h>

struct item {
	struct cds_wfcq_node node;
	long value;
	int producer;
};

static struct item *item_of(struct cds_wfcq_node *node)
{
	return caa_container_of(node, struct item, node);
}

CASE(first_in_first_out)
{
	struct cds_wfcq_head head;
	struct cds_wfcq_tail tail;
	struct item items[5];
	int state;

	cds_wfcq_init(&head, &tail);
	CHECK(cds_wfcq_empty(&head, &tail));
	CHECK(cds_wfcq_dequeue_blocking(&head, &tail) == NULL);
	for (int i = 0; i < 5; i++) {
		items[i].value = i;
		cds_wfcq_node_init(&items[i].node);
		/* Says whether there was something before. */
		CHECK_EQUAL(cds_wfcq_enqueue(&head, &tail, &items[i].node), i > 0);
		CHECK(!cds_wfcq_empty(&head, &tail));
	}
	CHECK(cds_wfcq_dequeue_blocking(&head, &tail) == &items[0].node);
	CHECK_WITH_STATE(cds_wfcq_dequeue_with_state_blocking(&head, &tail, &state),
			 &items[1].node, 0);
	cds_wfcq_dequeue_lock(&head, &tail);
	CHECK(__cds_wfcq_dequeue_blocking(&head, &tail) == &items[2].node);
	cds_wfcq_dequeue_unlock(&head, &tail);
	CHECK(__cds_wfcq_dequeue_nonblocking(&head, &tail) == &items[3].node);
	CHECK_WITH_STATE(cds_wfcq_dequeue_with_state_blocking(&head, &tail, &state),
			 &items[4].node, CDS_WFCQ_STATE_LAST);
	CHECK(cds_wfcq_empty(&head, &tail));
	CHECK_WITH_STATE(cds_wfcq_dequeue_with_state_blocking(&head, &tail, &state), NULL, 0);
	cds_wfcq_destroy(&head, &tail);
}

/* The same without the lock: both kinds of head are taken by the same functions. */
CASE(without_a_lock)
{
	struct __cds_wfcq_head head;
	struct cds_wfcq_tail tail;
	struct item items[4];
	int state;

	__cds_wfcq_init(&head, &tail);
	CHECK(cds_wfcq_empty(&head, &tail));
	CHECK(__cds_wfcq_dequeue_blocking(&head, &tail) == NULL);
	CHECK(__cds_wfcq_dequeue_nonblocking(&head, &tail) == NULL);
	for (int i = 0; i < 4; i++) {
		cds_wfcq_node_init(&items[i].node);
		CHECK_EQUAL(cds_wfcq_enqueue(&head, &tail, &items[i].node), i > 0);
	}
	CHECK_WITH_STATE(__cds_wfcq_dequeue_with_state_blocking(&head, &tail, &state),
			 &items[0].node, 0);
	CHECK_WITH_STATE(__cds_wfcq_dequeue_with_state_nonblocking(&head, &tail, &state),
			 &items[1].node, 0);
	CHECK(__cds_wfcq_dequeue_blocking(&head, &tail) == &items[2].node);
	CHECK_WITH_STATE(__cds_wfcq_dequeue_with_state_nonblocking(&head, &tail, &state),
			 &items[3].node, CDS_WFCQ_STATE_LAST);
	CHECK(cds_wfcq_empty(&head, &tail));
	/* An item may be queued again at once. */
	cds_wfcq_node_init(&items[0].node);
	CHECK_EQUAL(cds_wfcq_enqueue(&head, &tail, &items[0].node), 0);
	CHECK_WITH_STATE(__cds_wfcq_dequeue_with_state_blocking(&head, &tail, &state),
			 &items[0].node, CDS_WFCQ_STATE_LAST);
}

CASE(walking)
{
	struct cds_wfcq_head head;
	struct cds_wfcq_tail tail;
	struct item items[4];
	struct cds_wfcq_node *node, *next;
	long number = 0;

	cds_wfcq_init(&head, &tail);
	CHECK(__cds_wfcq_first_blocking(&head, &tail) == NULL);
	CHECK(__cds_wfcq_first_nonblocking(&head, &tail) == NULL);
	for (int i = 0; i < 4; i++) {
		items[i].value = i + 1;
		cds_wfcq_node_init(&items[i].node);
		cds_wfcq_enqueue(&head, &tail, &items[i].node);
	}
	CHECK(__cds_wfcq_first_blocking(&head, &tail) == &items[0].node);
	CHECK(__cds_wfcq_first_nonblocking(&head, &tail) == &items[0].node);
	CHECK(__cds_wfcq_next_blocking(&head, &tail, &items[0].node) == &items[1].node);
	CHECK(__cds_wfcq_next_nonblocking(&head, &tail, &items[1].node) == &items[2].node);
	CHECK(__cds_wfcq_next_blocking(&head, &tail, &items[3].node) == NULL);
	CHECK(__cds_wfcq_next_nonblocking(&head, &tail, &items[3].node) == NULL);
	__cds_wfcq_for_each_blocking(&head, &tail, node)
		number = number * 10 + item_of(node)->value;
	CHECK_EQUAL(number, 1234);
	number = 0;
	__cds_wfcq_for_each_blocking_safe(&head, &tail, node, next)
		number = number * 10 + item_of(node)->value;
	CHECK_EQUAL(number, 1234);
	cds_wfcq_destroy(&head, &tail);
}

/* Without what an enqueue writes last: as if its thread had been stopped between its exchange and its store. */
static void half_an_enqueue(struct cds_wfcq_tail *tail, struct cds_wfcq_node *node, struct cds_wfcq_node **before)
{
	node->next = NULL;
	*before = __atomic_exchange_n(&tail->p, node, __ATOMIC_SEQ_CST);
}

static void other_half(struct cds_wfcq_node *before, struct cds_wfcq_node *node)
{
	__atomic_store_n(&before->next, node, __ATOMIC_SEQ_CST);
}

CASE(would_block)
{
	struct __cds_wfcq_head head, other;
	struct cds_wfcq_tail tail, other_tail;
	struct item items[3];
	struct cds_wfcq_node *before;
	int state = -1;

	__cds_wfcq_init(&head, &tail);
	__cds_wfcq_init(&other, &other_tail);
	half_an_enqueue(&tail, &items[0].node, &before);
	CHECK(!cds_wfcq_empty(&head, &tail));
	CHECK(__cds_wfcq_first_nonblocking(&head, &tail) == CDS_WFCQ_WOULDBLOCK);
	CHECK(__cds_wfcq_dequeue_nonblocking(&head, &tail) == CDS_WFCQ_WOULDBLOCK);
	CHECK(__cds_wfcq_dequeue_with_state_nonblocking(&head, &tail, &state) == CDS_WFCQ_WOULDBLOCK);
	CHECK_EQUAL(state, 0);
	CHECK_EQUAL(__cds_wfcq_splice_nonblocking(&other, &other_tail, &head, &tail), CDS_WFCQ_RET_WOULDBLOCK);
	CHECK(cds_wfcq_empty(&other, &other_tail));
	other_half(before, &items[0].node);
	half_an_enqueue(&tail, &items[1].node, &before);
	/* The first is whole, but which comes next is not known yet. */
	CHECK(__cds_wfcq_first_nonblocking(&head, &tail) == &items[0].node);
	CHECK(__cds_wfcq_next_nonblocking(&head, &tail, &items[0].node) == CDS_WFCQ_WOULDBLOCK);
	CHECK(__cds_wfcq_dequeue_nonblocking(&head, &tail) == CDS_WFCQ_WOULDBLOCK);
	other_half(before, &items[1].node);
	CHECK(__cds_wfcq_dequeue_nonblocking(&head, &tail) == &items[0].node);
	CHECK(__cds_wfcq_dequeue_nonblocking(&head, &tail) == &items[1].node);
	CHECK(__cds_wfcq_dequeue_nonblocking(&head, &tail) == NULL);
}

struct waiting {
	struct __cds_wfcq_head *head;
	struct cds_wfcq_tail *tail;
	struct cds_wfcq_node *expected;
	int started, done;
};

static void *dequeues(void *argument)
{
	struct waiting *waiting = argument;

	flag_set(&waiting->started);
	CHECK(__cds_wfcq_dequeue_blocking(waiting->head, waiting->tail) == waiting->expected);
	flag_set(&waiting->done);
	return NULL;
}

CASE(blocks_for_half_an_enqueue)
{
	struct __cds_wfcq_head head;
	struct cds_wfcq_tail tail;
	struct item item;
	struct cds_wfcq_node *before;
	struct waiting waiting = { &head, &tail, &item.node, 0, 0 };

	__cds_wfcq_init(&head, &tail);
	half_an_enqueue(&tail, &item.node, &before);
	pthread_t thread = thread_start(dequeues, &waiting);
	flag_await(&waiting.started);
	let_others_run();
	CHECK(!flag_is_set(&waiting.done));
	other_half(before, &item.node);
	thread_end(thread);
}

CASE(splicing)
{
	struct cds_wfcq_head one, two;
	struct cds_wfcq_tail one_tail, two_tail;
	struct __cds_wfcq_head bare;
	struct cds_wfcq_tail bare_tail;
	struct item items[6];
	struct cds_wfcq_node *node;
	long number = 0;

	cds_wfcq_init(&one, &one_tail);
	cds_wfcq_init(&two, &two_tail);
	__cds_wfcq_init(&bare, &bare_tail);
	for (int i = 0; i < 6; i++) {
		items[i].value = i + 1;
		cds_wfcq_node_init(&items[i].node);
	}
	CHECK_EQUAL(cds_wfcq_splice_blocking(&one, &one_tail, &two, &two_tail), CDS_WFCQ_RET_SRC_EMPTY);
	CHECK_EQUAL(__cds_wfcq_splice_blocking(&one, &one_tail, &two, &two_tail), CDS_WFCQ_RET_SRC_EMPTY);
	CHECK_EQUAL(__cds_wfcq_splice_nonblocking(&one, &one_tail, &two, &two_tail), CDS_WFCQ_RET_SRC_EMPTY);
	cds_wfcq_enqueue(&two, &two_tail, &items[0].node);
	cds_wfcq_enqueue(&two, &two_tail, &items[1].node);
	CHECK_EQUAL(cds_wfcq_splice_blocking(&one, &one_tail, &two, &two_tail), CDS_WFCQ_RET_DEST_EMPTY);
	CHECK(cds_wfcq_empty(&two, &two_tail));
	cds_wfcq_enqueue(&two, &two_tail, &items[2].node);
	CHECK_EQUAL(cds_wfcq_splice_blocking(&one, &one_tail, &two, &two_tail), CDS_WFCQ_RET_DEST_NON_EMPTY);
	cds_wfcq_enqueue(&two, &two_tail, &items[3].node);
	CHECK_EQUAL(__cds_wfcq_splice_blocking(&one, &one_tail, &two, &two_tail), CDS_WFCQ_RET_DEST_NON_EMPTY);
	cds_wfcq_enqueue(&bare, &bare_tail, &items[4].node);
	cds_wfcq_enqueue(&bare, &bare_tail, &items[5].node);
	CHECK_EQUAL(__cds_wfcq_splice_nonblocking(&one, &one_tail, &bare, &bare_tail), CDS_WFCQ_RET_DEST_NON_EMPTY);
	CHECK(cds_wfcq_empty(&bare, &bare_tail));
	__cds_wfcq_for_each_blocking(&one, &one_tail, node)
		number = number * 10 + item_of(node)->value;
	CHECK_EQUAL(number, 123456);
	CHECK_EQUAL(__cds_wfcq_splice_nonblocking(&bare, &bare_tail, &one, &one_tail), CDS_WFCQ_RET_DEST_EMPTY);
	number = 0;
	while ((node = __cds_wfcq_dequeue_blocking(&bare, &bare_tail)) != NULL)
		number = number * 10 + item_of(node)->value;
	CHECK_EQUAL(number, 123456);
	CHECK(cds_wfcq_empty(&one, &one_tail));
	cds_wfcq_destroy(&one, &one_tail);
	cds_wfcq_destroy(&two, &two_tail);
}

enum { PRODUCERS = 3, EACH = 20000 };

struct shared_queue {
	struct cds_wfcq_head head __attribute__((aligned(64)));
	struct cds_wfcq_tail tail __attribute__((aligned(64)));
	struct item *items;
	long taken;
	long first_ones;	/* enqueues that found it empty */
	long last_ones;		/* dequeues and splices that left it empty */
};

struct part {
	struct shared_queue *shared;
	int producer;
};

static void *enqueues(void *argument)
{
	struct part *part = argument;
	struct item *items = part->shared->items + part->producer * EACH;

	for (long i = 0; i < EACH; i++) {
		items[i].value = i;
		items[i].producer = part->producer;
		cds_wfcq_node_init(&items[i].node);
		if (!cds_wfcq_enqueue(&part->shared->head, &part->shared->tail, &items[i].node))
			count_add(&part->shared->first_ones, 1);
	}
	return NULL;
}

static void *takes(void *argument)
{
	struct shared_queue *shared = argument;
	long seen[PRODUCERS];

	for (int i = 0; i < PRODUCERS; i++)
		seen[i] = -1;
	while (count_of(&shared->taken) < PRODUCERS * EACH) {
		int state;
		struct cds_wfcq_node *node =
			cds_wfcq_dequeue_with_state_blocking(&shared->head, &shared->tail, &state);

		if (!node) {
			sched_yield();
			continue;
		}
		struct item *item = item_of(node);
		/* In each producer's order. */
		CHECK(item->value > seen[item->producer]);
		seen[item->producer] = item->value;
		if (state & CDS_WFCQ_STATE_LAST)
			count_add(&shared->last_ones, 1);
		/* Free for any use at once. */
		memset(node, 0xff, sizeof(*node));
		count_add(&shared->taken, 1);
	}
	return NULL;
}

static void *takes_by_splicing(void *argument)
{
	struct shared_queue *shared = argument;
	long seen[PRODUCERS];

	for (int i = 0; i < PRODUCERS; i++)
		seen[i] = -1;
	while (count_of(&shared->taken) < PRODUCERS * EACH) {
		struct cds_wfcq_head own;
		struct cds_wfcq_tail own_tail;
		struct cds_wfcq_node *node, *next;
		enum cds_wfcq_ret ret;

		cds_wfcq_init(&own, &own_tail);
		ret = cds_wfcq_splice_blocking(&own, &own_tail, &shared->head, &shared->tail);
		if (ret == CDS_WFCQ_RET_SRC_EMPTY) {
			cds_wfcq_destroy(&own, &own_tail);
			sched_yield();
			continue;
		}
		CHECK_EQUAL(ret, CDS_WFCQ_RET_DEST_EMPTY);
		count_add(&shared->last_ones, 1);
		__cds_wfcq_for_each_blocking_safe(&own, &own_tail, node, next) {
			struct item *item = item_of(node);

			CHECK(item->value > seen[item->producer]);
			seen[item->producer] = item->value;
			memset(node, 0xff, sizeof(*node));
			count_add(&shared->taken, 1);
		}
	}
	return NULL;
}

static void among_threads(void *(*consumer)(void *), int consumers)
{
	static struct shared_queue shared;
	struct part parts[PRODUCERS];
	pthread_t producers[PRODUCERS], takers[2];

	memset(&shared, 0, sizeof(shared));
	cds_wfcq_init(&shared.head, &shared.tail);
	shared.items = calloc(PRODUCERS * EACH, sizeof(struct item));
	CHECK(shared.items != NULL);
	for (int i = 0; i < PRODUCERS; i++) {
		parts[i] = (struct part){ &shared, i };
		producers[i] = thread_start(enqueues, &parts[i]);
	}
	for (int i = 0; i < consumers; i++)
		takers[i] = thread_start(consumer, &shared);
	for (int i = 0; i < PRODUCERS; i++)
		thread_end(producers[i]);
	for (int i = 0; i < consumers; i++)
		thread_end(takers[i]);
	CHECK_EQUAL(shared.taken, PRODUCERS * EACH);
	CHECK(cds_wfcq_empty(&shared.head, &shared.tail));
	/* A producer that finds it empty wakes, a consumer that leaves it empty sleeps: they must agree. */
	CHECK_EQUAL(shared.first_ones, shared.last_ones);
	cds_wfcq_destroy(&shared.head, &shared.tail);
	free(shared.items);
}

CASE(two_consumers)
{
	among_threads(takes, 2);
}

CASE(a_splicing_consumer)
{
	among_threads(takes_by_splicing, 1);
}
