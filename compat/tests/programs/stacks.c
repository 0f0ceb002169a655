/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The stacks: wait-free, lock-free, and the older lock-free one under RCU. Every function with every answer it can
 * give, then pushed and popped by several threads: nothing is lost, nothing comes twice.
 */
#define CDS_LFS_RCU_DEPRECATED
#include "flavor.h"
#include <urcu/wfstack.h>
#include <urcu/lfstack.h>
#include <urcu/rculfstack.h>

enum { PUSHERS = 3, POPPERS = 2, EACH = 10000 };

CASE(wait_free)
{
	struct cds_wfs_stack stack;
	struct cds_wfs_node nodes[5], *node, *next;
	struct cds_wfs_head *all;
	int state, count = 0;

	cds_wfs_init(&stack);
	CHECK(cds_wfs_empty(&stack));
	CHECK(cds_wfs_pop_blocking(&stack) == NULL);
	CHECK(cds_wfs_pop_all_blocking(&stack) == NULL);
	for (int i = 0; i < 5; i++) {
		cds_wfs_node_init(&nodes[i]);
		CHECK_EQUAL(!!cds_wfs_push(&stack, &nodes[i]), i > 0);
		CHECK(!cds_wfs_empty(&stack));
	}
	CHECK(cds_wfs_pop_blocking(&stack) == &nodes[4]);
	CHECK_WITH_STATE(cds_wfs_pop_with_state_blocking(&stack, &state), &nodes[3], 0);
	cds_wfs_pop_lock(&stack);
	CHECK(__cds_wfs_pop_blocking(&stack) == &nodes[2]);
	CHECK(__cds_wfs_pop_nonblocking(&stack) == &nodes[1]);
	cds_wfs_pop_unlock(&stack);
	CHECK_WITH_STATE(cds_wfs_pop_with_state_blocking(&stack, &state),
			 &nodes[0], CDS_WFS_STATE_LAST);
	CHECK_WITH_STATE(cds_wfs_pop_with_state_blocking(&stack, &state), NULL, 0);
	for (int i = 0; i < 5; i++) {
		cds_wfs_node_init(&nodes[i]);
		cds_wfs_push(&stack, &nodes[i]);
	}
	all = cds_wfs_pop_all_blocking(&stack);
	CHECK(cds_wfs_empty(&stack));
	CHECK(cds_wfs_first(all) == &nodes[4]);
	CHECK(cds_wfs_next_blocking(&nodes[4]) == &nodes[3]);
	CHECK(cds_wfs_next_nonblocking(&nodes[3]) == &nodes[2]);
	CHECK(cds_wfs_next_blocking(&nodes[0]) == NULL);
	CHECK(cds_wfs_next_nonblocking(&nodes[0]) == NULL);
	cds_wfs_for_each_blocking(all, node)
		CHECK(node == &nodes[4 - count++]);
	CHECK_EQUAL(count, 5);
	cds_wfs_for_each_blocking_safe(all, node, next) {
		CHECK(node == &nodes[--count]);
		memset(node, 0xff, sizeof(*node));
	}
	CHECK_EQUAL(count, 0);
	CHECK(cds_wfs_first(NULL) == NULL);
	cds_wfs_destroy(&stack);
}

CASE(wait_free_without_a_lock)
{
	struct __cds_wfs_stack stack;
	struct cds_wfs_node nodes[3];
	int state;

	__cds_wfs_init(&stack);
	CHECK(cds_wfs_empty(&stack));
	CHECK(__cds_wfs_pop_blocking(&stack) == NULL);
	CHECK(__cds_wfs_pop_nonblocking(&stack) == NULL);
	CHECK(__cds_wfs_pop_all(&stack) == NULL);
	for (int i = 0; i < 3; i++) {
		cds_wfs_node_init(&nodes[i]);
		cds_wfs_push(&stack, &nodes[i]);
	}
	CHECK_WITH_STATE(__cds_wfs_pop_with_state_blocking(&stack, &state), &nodes[2], 0);
	CHECK_WITH_STATE(__cds_wfs_pop_with_state_nonblocking(&stack, &state), &nodes[1], 0);
	CHECK_WITH_STATE(__cds_wfs_pop_with_state_nonblocking(&stack, &state),
			 &nodes[0], CDS_WFS_STATE_LAST);
	CHECK_WITH_STATE(__cds_wfs_pop_with_state_blocking(&stack, &state), NULL, 0);
	cds_wfs_node_init(&nodes[0]);
	cds_wfs_push(&stack, &nodes[0]);
	CHECK(cds_wfs_first(__cds_wfs_pop_all(&stack)) == &nodes[0]);
	/* A push half done: its exchange has been made, what was below is not written yet. */
	cds_wfs_node_init(&nodes[1]);
	struct cds_wfs_head *below = __atomic_exchange_n(&stack.head,
							 caa_container_of(&nodes[1], struct cds_wfs_head, node),
							 __ATOMIC_SEQ_CST);
	CHECK(__cds_wfs_pop_nonblocking(&stack) == CDS_WFS_WOULDBLOCK);
	CHECK(__cds_wfs_pop_with_state_nonblocking(&stack, &state) == CDS_WFS_WOULDBLOCK);
	CHECK(cds_wfs_next_nonblocking(&nodes[1]) == CDS_WFS_WOULDBLOCK);
	__atomic_store_n(&nodes[1].next, &below->node, __ATOMIC_SEQ_CST);
	CHECK(__cds_wfs_pop_nonblocking(&stack) == &nodes[1]);
	CHECK(__cds_wfs_pop_nonblocking(&stack) == NULL);
}

CASE(lock_free)
{
	struct cds_lfs_stack stack;
	struct __cds_lfs_stack bare;
	struct cds_lfs_node nodes[5], *node, *next;
	struct cds_lfs_head *all;
	int count = 0;

	cds_lfs_init(&stack);
	CHECK(cds_lfs_empty(&stack));
	CHECK(cds_lfs_pop_blocking(&stack) == NULL);
	CHECK(cds_lfs_pop_all_blocking(&stack) == NULL);
	for (int i = 0; i < 5; i++) {
		cds_lfs_node_init(&nodes[i]);
		CHECK_EQUAL(cds_lfs_push(&stack, &nodes[i]), i > 0);
		CHECK(!cds_lfs_empty(&stack));
	}
	CHECK(cds_lfs_pop_blocking(&stack) == &nodes[4]);
	cds_lfs_pop_lock(&stack);
	CHECK(__cds_lfs_pop(&stack) == &nodes[3]);
	cds_lfs_pop_unlock(&stack);
	all = cds_lfs_pop_all_blocking(&stack);
	CHECK(cds_lfs_empty(&stack));
	cds_lfs_for_each(all, node)
		CHECK(node == &nodes[2 - count++]);
	CHECK_EQUAL(count, 3);
	cds_lfs_for_each_safe(all, node, next) {
		CHECK(node == &nodes[--count]);
		memset(node, 0xff, sizeof(*node));
	}
	CHECK_EQUAL(count, 0);
	cds_lfs_destroy(&stack);

	__cds_lfs_init(&bare);
	CHECK(cds_lfs_empty(&bare));
	CHECK(__cds_lfs_pop(&bare) == NULL);
	CHECK(__cds_lfs_pop_all(&bare) == NULL);
	for (int i = 0; i < 2; i++) {
		cds_lfs_node_init(&nodes[i]);
		CHECK_EQUAL(cds_lfs_push(&bare, &nodes[i]), i > 0);
	}
	CHECK(__cds_lfs_pop(&bare) == &nodes[1]);
	CHECK(&__cds_lfs_pop_all(&bare)->node == &nodes[0]);
}

READER_CASE(lock_free_under_rcu)
{
	struct cds_lfs_stack_rcu stack;
	struct cds_lfs_node_rcu nodes[3];

	cds_lfs_init_rcu(&stack);
	rcu_read_lock();
	CHECK(cds_lfs_pop_rcu(&stack) == NULL);
	for (int i = 0; i < 3; i++) {
		cds_lfs_node_init_rcu(&nodes[i]);
		CHECK_EQUAL(!!cds_lfs_push_rcu(&stack, &nodes[i]), i > 0);
	}
	for (int i = 2; i >= 0; i--)
		CHECK(cds_lfs_pop_rcu(&stack) == &nodes[i]);
	CHECK(cds_lfs_pop_rcu(&stack) == NULL);
	rcu_read_unlock();
}

/* What the three have in common, for the same test among threads. */
struct item {
	union {
		struct cds_wfs_node wait_free;
		struct cds_lfs_node lock_free;
		struct cds_lfs_node_rcu under_rcu;
	} node;
	long times;
};

struct stack_kind {
	void (*push)(struct item *item);
	struct item *(*pop)(void);
	/* All there is, or NULL: handed to `took` one by one. */
	void (*pop_all)(void (*took)(struct item *item));
};

static struct cds_wfs_stack wait_free_stack;
static struct cds_lfs_stack lock_free_stack;
static struct cds_lfs_stack_rcu rcu_stack;

static void push_wait_free(struct item *item)
{
	cds_wfs_node_init(&item->node.wait_free);
	cds_wfs_push(&wait_free_stack, &item->node.wait_free);
}

static struct item *pop_wait_free(void)
{
	return (struct item *)cds_wfs_pop_blocking(&wait_free_stack);
}

static void pop_all_wait_free(void (*took)(struct item *item))
{
	struct cds_wfs_head *all = cds_wfs_pop_all_blocking(&wait_free_stack);
	struct cds_wfs_node *node, *next;

	cds_wfs_for_each_blocking_safe(all, node, next)
		took((struct item *)node);
}

static void push_lock_free(struct item *item)
{
	cds_lfs_node_init(&item->node.lock_free);
	cds_lfs_push(&lock_free_stack, &item->node.lock_free);
}

static struct item *pop_lock_free(void)
{
	return (struct item *)cds_lfs_pop_blocking(&lock_free_stack);
}

static void pop_all_lock_free(void (*took)(struct item *item))
{
	struct cds_lfs_head *all = cds_lfs_pop_all_blocking(&lock_free_stack);
	struct cds_lfs_node *node, *next;

	if (all)
		cds_lfs_for_each_safe(all, node, next)
			took((struct item *)node);
}

/* No lock, but a section: nothing is pushed again before a grace period, here never. */
static struct item *pop_in_a_section(void)
{
	rcu_read_lock();
	struct item *item = (struct item *)__cds_lfs_pop(&lock_free_stack);
	rcu_read_unlock();
	rcu_quiescent_state();
	return item;
}

static void push_under_rcu(struct item *item)
{
	cds_lfs_node_init_rcu(&item->node.under_rcu);
	rcu_read_lock();
	cds_lfs_push_rcu(&rcu_stack, &item->node.under_rcu);
	rcu_read_unlock();
}

static struct item *pop_under_rcu(void)
{
	rcu_read_lock();
	struct item *item = (struct item *)cds_lfs_pop_rcu(&rcu_stack);
	rcu_read_unlock();
	rcu_quiescent_state();
	return item;
}

static const struct stack_kind *kind;
static struct item *items;
static long popped;

static void took(struct item *item)
{
	count_add(&item->times, 1);
	count_add(&popped, 1);
}

/* What was taken last of each pusher, of all there is: what came later lies on top. */
static __thread struct item *above[PUSHERS];

static void took_from_below(struct item *item)
{
	struct item **last = &above[(item - items) / EACH];

	CHECK(*last == NULL || item < *last);
	*last = item;
	took(item);
}

static void pushes(void *argument)
{
	struct item *mine = items + (intptr_t)argument * EACH;

	for (int i = 0; i < EACH; i++)
		kind->push(&mine[i]);
}

static void pops(void *argument)
{
	int takes_all = argument != NULL && kind->pop_all != NULL;

	while (count_of(&popped) < PUSHERS * EACH) {
		struct item *item = NULL;

		memset(above, 0, sizeof(above));
		if (takes_all)
			kind->pop_all(took_from_below);
		else
			item = kind->pop();
		if (item)
			took(item);
		else
			sched_yield();
		rcu_quiescent_state();
	}
}

static void among_threads(const struct stack_kind *of)
{
	pthread_t pushers[PUSHERS], poppers[POPPERS];

	kind = of;
	popped = 0;
	items = calloc(PUSHERS * EACH, sizeof(struct item));
	CHECK(items != NULL);
	for (intptr_t i = 0; i < PUSHERS; i++)
		pushers[i] = reader_start(pushes, (void *)i);
	for (intptr_t i = 0; i < POPPERS; i++)
		poppers[i] = reader_start(pops, (void *)i);
	for (int i = 0; i < PUSHERS; i++)
		thread_end(pushers[i]);
	for (int i = 0; i < POPPERS; i++)
		thread_end(poppers[i]);
	for (int i = 0; i < PUSHERS * EACH; i++)
		CHECK_EQUAL(items[i].times, 1);
	CHECK(kind->pop == pop_in_a_section || kind->pop == pop_under_rcu || kind->pop() == NULL);
	free(items);
}

CASE(wait_free_among_threads)
{
	static const struct stack_kind wait_free_kind = { push_wait_free, pop_wait_free, pop_all_wait_free };

	cds_wfs_init(&wait_free_stack);
	among_threads(&wait_free_kind);
	cds_wfs_destroy(&wait_free_stack);
}

CASE(lock_free_among_threads)
{
	static const struct stack_kind lock_free_kind = { push_lock_free, pop_lock_free, pop_all_lock_free };

	cds_lfs_init(&lock_free_stack);
	among_threads(&lock_free_kind);
	cds_lfs_destroy(&lock_free_stack);
}

CASE(lock_free_in_sections)
{
	static const struct stack_kind in_sections = { push_lock_free, pop_in_a_section, NULL };

	cds_lfs_init(&lock_free_stack);
	among_threads(&in_sections);
	cds_lfs_destroy(&lock_free_stack);
}

CASE(under_rcu_among_threads)
{
	static const struct stack_kind under_rcu = { push_under_rcu, pop_under_rcu, NULL };

	cds_lfs_init_rcu(&rcu_stack);
	among_threads(&under_rcu);
}
