/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * random SEED library|inlined|mixed: many operations on every queue and stack, chosen by the seed; each answer is a
 * line. Whether the library does them or what the headers inline, or both on one structure, the lines are to be the
 * same, and so with whichever library.
 */
#define _LGPL_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/wfcqueue.h>
#include <urcu/wfqueue.h>
#include <urcu/wfstack.h>
#include <urcu/lfstack.h>
#include <urcu/rculfqueue.h>
#include <urcu/rculfstack.h>
#include "library.h"

static unsigned long state, choices;
static enum { LIBRARY, INLINED, MIXED } who;

static unsigned int random_below(unsigned long *from, unsigned int below)
{
	*from = *from * 6364136223846793005UL + 1442695040888963407UL;
	return (unsigned int)(*from >> 33) % below;
}

static int by_library(void)
{
	if (who == MIXED)
		return random_below(&choices, 2);
	return who == LIBRARY;
}

/* One operation, by either. */
#define EITHER(function, ...) (by_library() ? library_##function(__VA_ARGS__) : function(__VA_ARGS__))
#define EITHER_OF_NOTHING(function, ...)		\
	do {						\
		if (by_library())			\
			library_##function(__VA_ARGS__);\
		else					\
			function(__VA_ARGS__);		\
	} while (0)

enum { NODES = 64 };

/* One word is every kind of node but that of the lock-free queue. */
static struct cds_wfcq_node wfcq_nodes[NODES];
static struct cds_wfq_node wfq_nodes[NODES];
static struct cds_wfs_node wfs_nodes[NODES];
static struct cds_lfs_node lfs_nodes[NODES];
static struct cds_lfs_node_rcu lfs_rcu_nodes[NODES];
static struct cds_lfq_node_rcu lfq_nodes[NODES];

/* Which of an array's nodes it is; -1 for none, -2 for "would block". */
#define INDEX(array, found)								\
	({										\
		__typeof__(&(array)[0]) node_ = (found);				\
		node_ == NULL ? -1 : (void *)node_ == (void *)-1UL ? -2 : (int)(node_ - (array)); \
	})

static void said(const char *what, int answer)
{
	printf("%s %d\n", what, answer);
}

/* Nodes that stand nowhere, of one kind. */
struct free_nodes {
	int count, nodes[NODES];
};

static void give_back(struct free_nodes *nodes, int node)
{
	if (node >= 0)
		nodes->nodes[nodes->count++] = node;
}

static void all_free(struct free_nodes *nodes)
{
	for (nodes->count = 0; nodes->count < NODES; nodes->count++)
		nodes->nodes[nodes->count] = nodes->count;
}

static struct cds_wfcq_head heads[2];
static struct cds_wfcq_tail tails[2];

static void wfcq_take(struct free_nodes *nodes, int which, int how)
{
	struct cds_wfcq_head *head = &heads[which];
	struct cds_wfcq_tail *tail = &tails[which];
	struct cds_wfcq_node *node;
	int flags = 77;

	switch (how) {
	case 0: node = EITHER(cds_wfcq_dequeue_blocking, head, tail); break;
	case 1: node = EITHER(cds_wfcq_dequeue_with_state_blocking, head, tail, &flags); break;
	case 2: node = EITHER(__cds_wfcq_dequeue_blocking, head, tail); break;
	case 3: node = EITHER(__cds_wfcq_dequeue_nonblocking, head, tail); break;
	case 4: node = EITHER(__cds_wfcq_dequeue_with_state_blocking, head, tail, &flags); break;
	default: node = EITHER(__cds_wfcq_dequeue_with_state_nonblocking, head, tail, &flags); break;
	}
	said("wfcq dequeue", INDEX(wfcq_nodes, node));
	said("wfcq state", flags);
	give_back(nodes, INDEX(wfcq_nodes, node));
}

static void wfcq_walk(int which)
{
	struct cds_wfcq_head *head = &heads[which];
	struct cds_wfcq_tail *tail = &tails[which];
	struct cds_wfcq_node *node = EITHER(__cds_wfcq_first_blocking, head, tail);

	said("wfcq first", INDEX(wfcq_nodes, EITHER(__cds_wfcq_first_nonblocking, head, tail)));
	while (node) {
		said("wfcq node", INDEX(wfcq_nodes, node));
		said("wfcq next", INDEX(wfcq_nodes, EITHER(__cds_wfcq_next_nonblocking, head, tail, node)));
		node = EITHER(__cds_wfcq_next_blocking, head, tail, node);
	}
}

static void wfcq_splice(int from, int how)
{
	int to = !from, answer;

	if (how == 0)
		answer = EITHER(cds_wfcq_splice_blocking, &heads[to], &tails[to], &heads[from], &tails[from]);
	else if (how == 1)
		answer = EITHER(__cds_wfcq_splice_blocking, &heads[to], &tails[to], &heads[from], &tails[from]);
	else
		answer = EITHER(__cds_wfcq_splice_nonblocking, &heads[to], &tails[to], &heads[from], &tails[from]);
	said("wfcq splice", answer);
}

/* A producer that was stopped between its two steps, by hand; the answers of those who do not wait; its second step. */
static void wfcq_half_done(struct free_nodes *nodes, int which)
{
	if (nodes->count == 0)
		return;
	struct cds_wfcq_node *node = &wfcq_nodes[nodes->nodes[--nodes->count]];
	struct cds_wfcq_node *before = tails[which].p;

	EITHER_OF_NOTHING(cds_wfcq_node_init, node);
	tails[which].p = node;
	said("wfcq empty, half done", EITHER(cds_wfcq_empty, &heads[which], &tails[which]));
	for (int turn = 0; turn < 3; turn++)
		if (tails[which].p == node && before->next == NULL && heads[which].node.next == NULL)
			wfcq_take(nodes, which, 3 + 2 * (turn % 2));
	said("wfcq first, half done",
	     INDEX(wfcq_nodes, EITHER(__cds_wfcq_first_nonblocking, &heads[which], &tails[which])));
	if (before == &heads[which].node)
		wfcq_splice(which, 2);
	else
		said("wfcq next, half done", INDEX(wfcq_nodes,
			EITHER(__cds_wfcq_next_nonblocking, &heads[which], &tails[which], before)));
	if (before != &heads[which].node && heads[which].node.next == before)
		/* The only whole one cannot be had without its next, and stays. */
		wfcq_take(nodes, which, 5);
	before->next = node;
	wfcq_walk(which);
}

static void test_wfcqueue(int operations)
{
	struct free_nodes nodes;

	all_free(&nodes);
	for (int i = 0; i < NODES; i++)
		EITHER_OF_NOTHING(cds_wfcq_node_init, &wfcq_nodes[i]);
	for (int which = 0; which < 2; which++)
		EITHER_OF_NOTHING(cds_wfcq_init, &heads[which], &tails[which]);
	while (operations--) {
		int which = (int)random_below(&state, 2), how = (int)random_below(&state, 6);

		said("wfcq empty", EITHER(cds_wfcq_empty, &heads[which], &tails[which]));
		switch (random_below(&state, 10)) {
		case 0: case 1: case 2: case 3:
			if (nodes.count > 0) {
				int node = nodes.nodes[--nodes.count];

				EITHER_OF_NOTHING(cds_wfcq_node_init, &wfcq_nodes[node]);
				said("wfcq enqueue", EITHER(cds_wfcq_enqueue, &heads[which], &tails[which],
							    &wfcq_nodes[node]));
			}
			break;
		case 4: case 5: case 6:
			EITHER_OF_NOTHING(cds_wfcq_dequeue_lock, &heads[which], &tails[which]);
			EITHER_OF_NOTHING(cds_wfcq_dequeue_unlock, &heads[which], &tails[which]);
			wfcq_take(&nodes, which, how);
			break;
		case 7: wfcq_walk(which); break;
		case 8: wfcq_splice(which, how % 3); break;
		default: wfcq_half_done(&nodes, which); break;
		}
	}
	for (int which = 0; which < 2; which++)
		EITHER_OF_NOTHING(cds_wfcq_destroy, &heads[which], &tails[which]);
}

static void test_wfqueue(int operations)
{
	struct cds_wfq_queue queue;
	struct free_nodes nodes;

	all_free(&nodes);
	EITHER_OF_NOTHING(cds_wfq_init, &queue);
	while (operations--) {
		if (random_below(&state, 2) && nodes.count > 0) {
			int node = nodes.nodes[--nodes.count];

			EITHER_OF_NOTHING(cds_wfq_node_init, &wfq_nodes[node]);
			EITHER_OF_NOTHING(cds_wfq_enqueue, &queue, &wfq_nodes[node]);
		} else {
			struct cds_wfq_node *node = random_below(&state, 2) ? EITHER(cds_wfq_dequeue_blocking, &queue)
									    : EITHER(__cds_wfq_dequeue_blocking, &queue);

			said("wfq dequeue", INDEX(wfq_nodes, node));
			give_back(&nodes, INDEX(wfq_nodes, node));
		}
	}
	EITHER_OF_NOTHING(cds_wfq_destroy, &queue);
}

static void wfs_take(struct cds_wfs_stack *stack, struct free_nodes *nodes, int how)
{
	cds_wfs_stack_ptr_t any = { .s = stack };
	struct cds_wfs_node *node;
	int flags = 77;

	switch (how) {
	case 0: node = EITHER(cds_wfs_pop_blocking, stack); break;
	case 1: node = EITHER(cds_wfs_pop_with_state_blocking, stack, &flags); break;
	case 2: node = EITHER(__cds_wfs_pop_blocking, any); break;
	case 3: node = EITHER(__cds_wfs_pop_nonblocking, any); break;
	case 4: node = EITHER(__cds_wfs_pop_with_state_blocking, any, &flags); break;
	default: node = EITHER(__cds_wfs_pop_with_state_nonblocking, any, &flags); break;
	}
	said("wfs pop", INDEX(wfs_nodes, node));
	said("wfs state", flags);
	give_back(nodes, INDEX(wfs_nodes, node));
}

static void wfs_take_all(struct cds_wfs_stack *stack, struct free_nodes *nodes)
{
	cds_wfs_stack_ptr_t any = { .s = stack };
	struct cds_wfs_head *all =
		random_below(&state, 2) ? EITHER(cds_wfs_pop_all_blocking, stack) : EITHER(__cds_wfs_pop_all, any);
	struct cds_wfs_node *node = EITHER(cds_wfs_first, all), *next;

	said("wfs all", all != NULL);
	while (node) {
		said("wfs node", INDEX(wfs_nodes, node));
		next = random_below(&state, 2) ? EITHER(cds_wfs_next_blocking, node)
					       : EITHER(cds_wfs_next_nonblocking, node);
		give_back(nodes, INDEX(wfs_nodes, node));
		node = next;
	}
}

static void wfs_half_done(struct cds_wfs_stack *stack, struct free_nodes *nodes)
{
	if (nodes->count == 0)
		return;
	struct cds_wfs_node *node = &wfs_nodes[nodes->nodes[--nodes->count]];
	struct cds_wfs_head *below = stack->head;

	EITHER_OF_NOTHING(cds_wfs_node_init, node);
	stack->head = (struct cds_wfs_head *)node;
	wfs_take(stack, nodes, 3);
	wfs_take(stack, nodes, 5);
	said("wfs next, half done", INDEX(wfs_nodes, EITHER(cds_wfs_next_nonblocking, node)));
	node->next = &below->node;
}

static void test_wfstack(int operations)
{
	struct cds_wfs_stack stack;
	cds_wfs_stack_ptr_t any = { .s = &stack };
	struct free_nodes nodes;

	all_free(&nodes);
	EITHER_OF_NOTHING(cds_wfs_init, &stack);
	while (operations--) {
		said("wfs empty", EITHER(cds_wfs_empty, any));
		switch (random_below(&state, 8)) {
		case 0: case 1: case 2: case 3:
			if (nodes.count > 0) {
				int node = nodes.nodes[--nodes.count];

				EITHER_OF_NOTHING(cds_wfs_node_init, &wfs_nodes[node]);
				said("wfs push", EITHER(cds_wfs_push, any, &wfs_nodes[node]));
			}
			break;
		case 4: case 5:
			EITHER_OF_NOTHING(cds_wfs_pop_lock, &stack);
			EITHER_OF_NOTHING(cds_wfs_pop_unlock, &stack);
			wfs_take(&stack, &nodes, (int)random_below(&state, 6));
			break;
		case 6: wfs_half_done(&stack, &nodes); break;
		default: wfs_take_all(&stack, &nodes); break;
		}
	}
	EITHER_OF_NOTHING(cds_wfs_destroy, &stack);
}

static void test_lfstack(int operations)
{
	struct cds_lfs_stack stack;
	cds_lfs_stack_ptr_t any = { .s = &stack };
	struct free_nodes nodes;

	all_free(&nodes);
	EITHER_OF_NOTHING(cds_lfs_init, &stack);
	while (operations--) {
		said("lfs empty", EITHER(cds_lfs_empty, any));
		unsigned int what = random_below(&state, 8);

		if (what < 4 && nodes.count > 0) {
			int node = nodes.nodes[--nodes.count];

			EITHER_OF_NOTHING(cds_lfs_node_init, &lfs_nodes[node]);
			said("lfs push", EITHER(cds_lfs_push, any, &lfs_nodes[node]));
		} else if (what < 7) {
			struct cds_lfs_node *node;

			EITHER_OF_NOTHING(cds_lfs_pop_lock, &stack);
			node = EITHER(__cds_lfs_pop, any);
			EITHER_OF_NOTHING(cds_lfs_pop_unlock, &stack);
			said("lfs pop", INDEX(lfs_nodes, node));
			give_back(&nodes, INDEX(lfs_nodes, node));
			node = EITHER(cds_lfs_pop_blocking, &stack);
			said("lfs pop", INDEX(lfs_nodes, node));
			give_back(&nodes, INDEX(lfs_nodes, node));
		} else {
			struct cds_lfs_head *all = random_below(&state, 2) ? EITHER(cds_lfs_pop_all_blocking, &stack)
									   : EITHER(__cds_lfs_pop_all, any);
			struct cds_lfs_node *node;

			said("lfs all", all != NULL);
			for (node = all ? &all->node : NULL; node; node = node->next) {
				said("lfs node", INDEX(lfs_nodes, node));
				give_back(&nodes, INDEX(lfs_nodes, node));
			}
		}
	}
	EITHER_OF_NOTHING(cds_lfs_destroy, &stack);
}

static void test_rculfstack(int operations)
{
	struct cds_lfs_stack_rcu stack;
	struct free_nodes nodes;

	all_free(&nodes);
	EITHER_OF_NOTHING(cds_lfs_init_rcu, &stack);
	while (operations--) {
		if (random_below(&state, 2) && nodes.count > 0) {
			int node = nodes.nodes[--nodes.count];

			EITHER_OF_NOTHING(cds_lfs_node_init_rcu, &lfs_rcu_nodes[node]);
			said("lfs_rcu push", EITHER(cds_lfs_push_rcu, &stack, &lfs_rcu_nodes[node]));
		} else {
			struct cds_lfs_node_rcu *node = EITHER(cds_lfs_pop_rcu, &stack);

			said("lfs_rcu pop", INDEX(lfs_rcu_nodes, node));
			give_back(&nodes, INDEX(lfs_rcu_nodes, node));
		}
	}
}

/* A call_rcu without readers: later is when the test ends. */
struct rcu_head *called[1 << 16];
void (*functions[1 << 16])(struct rcu_head *);
static int calls;

static void call_later(struct rcu_head *head, void (*function)(struct rcu_head *))
{
	called[calls] = head;
	functions[calls++] = function;
}

static void test_rculfqueue(int operations)
{
	struct cds_lfq_queue_rcu queue;
	struct free_nodes nodes;
	int left = operations;

	all_free(&nodes);
	EITHER_OF_NOTHING(cds_lfq_init_rcu, &queue, call_later);
	while (left--) {
		if (random_below(&state, 2) && nodes.count > 0) {
			int node = nodes.nodes[--nodes.count];

			EITHER_OF_NOTHING(cds_lfq_node_init_rcu, &lfq_nodes[node]);
			EITHER_OF_NOTHING(cds_lfq_enqueue_rcu, &queue, &lfq_nodes[node]);
			said("lfq destroy", EITHER(cds_lfq_destroy_rcu, &queue));
		} else {
			struct cds_lfq_node_rcu *node = EITHER(cds_lfq_dequeue_rcu, &queue);

			said("lfq dequeue", INDEX(lfq_nodes, node));
			give_back(&nodes, INDEX(lfq_nodes, node));
		}
	}
	while (nodes.count < NODES)
		give_back(&nodes, INDEX(lfq_nodes, EITHER(cds_lfq_dequeue_rcu, &queue)));
	said("lfq dequeue at the end", INDEX(lfq_nodes, EITHER(cds_lfq_dequeue_rcu, &queue)));
	said("lfq destroy at the end", EITHER(cds_lfq_destroy_rcu, &queue));
	said("lfq calls", calls);
	for (int i = 0; i < calls; i++)
		functions[i](called[i]);
}

int main(int argc, char **argv)
{
	enum { OPERATIONS = 3000 };

	if (argc != 3)
		return 2;
	state = strtoul(argv[1], NULL, 10);
	choices = state ^ 0x5eed;
	who = strcmp(argv[2], "library") == 0 ? LIBRARY : strcmp(argv[2], "inlined") == 0 ? INLINED : MIXED;
	test_wfcqueue(OPERATIONS);
	test_wfqueue(OPERATIONS);
	test_wfstack(OPERATIONS);
	test_lfstack(OPERATIONS);
	test_rculfstack(OPERATIONS);
	test_rculfqueue(OPERATIONS);
	return 0;
}
