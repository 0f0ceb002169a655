/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads whose operations are inlined beside threads that call the library, on one structure: a program whose parts
 * were compiled in different ways. Each producer's nodes come out once, and in order.
 */
#define _LGPL_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <urcu/urcu-memb.h>
#include <urcu/wfcqueue.h>
#include <urcu/wfqueue.h>
#include <urcu/wfstack.h>
#include <urcu/lfstack.h>
#include <urcu/rculfqueue.h>
#include <urcu/rculfstack.h>
#include "../../examples/check.h"
#include "library.h"

enum { PRODUCERS = 4, CONSUMERS = 2, EACH = 4000 };

/* By turns of `who`: inlined, or the library's. */
#define EITHER(who, function, ...) ((who) % 2 ? library_##function(__VA_ARGS__) : function(__VA_ARGS__))

struct item {
	union {
		struct cds_wfcq_node wfcq;
		struct cds_wfq_node wfq;
		struct cds_wfs_node wfs;
		struct cds_lfq_node_rcu lfq;
	};
	int producer, number, taken;
};

static struct item items[PRODUCERS][EACH];
static long taken;

struct structure {
	const char *name;
	int fifo;
	void (*put)(int who, struct item *item);
	struct item *(*take)(int who);
};

static const struct structure *structure;
static pthread_barrier_t start;

static struct cds_wfcq_head wfcq_head;
static struct cds_wfcq_tail wfcq_tail;

static void wfcq_put(int who, struct item *item)
{
	cds_wfcq_node_init(&item->wfcq);
	(void)EITHER(who, cds_wfcq_enqueue, &wfcq_head, &wfcq_tail, &item->wfcq);
}

static struct item *wfcq_take(int who)
{
	return (struct item *)EITHER(who, cds_wfcq_dequeue_blocking, &wfcq_head, &wfcq_tail);
}

static struct cds_wfq_queue wfq;

static void wfq_put(int who, struct item *item)
{
	cds_wfq_node_init(&item->wfq);
	EITHER(who, cds_wfq_enqueue, &wfq, &item->wfq);
}

static struct item *wfq_take(int who)
{
	return (struct item *)EITHER(who, cds_wfq_dequeue_blocking, &wfq);
}

static struct cds_wfs_stack wfs;

static void wfs_put(int who, struct item *item)
{
	cds_wfs_stack_ptr_t any = { .s = &wfs };

	cds_wfs_node_init(&item->wfs);
	(void)EITHER(who, cds_wfs_push, any, &item->wfs);
}

static struct item *wfs_take(int who)
{
	return (struct item *)EITHER(who, cds_wfs_pop_blocking, &wfs);
}

static struct cds_lfq_queue_rcu lfq;

static void lfq_put(int who, struct item *item)
{
	cds_lfq_node_init_rcu(&item->lfq);
	urcu_memb_read_lock();
	EITHER(who, cds_lfq_enqueue_rcu, &lfq, &item->lfq);
	urcu_memb_read_unlock();
}

static struct item *lfq_take(int who)
{
	urcu_memb_read_lock();
	struct cds_lfq_node_rcu *node = EITHER(who, cds_lfq_dequeue_rcu, &lfq);
	urcu_memb_read_unlock();
	return (struct item *)node;
}

static void *produces(void *argument)
{
	int who = (int)(long)argument;

	urcu_memb_register_thread();
	pthread_barrier_wait(&start);
	for (int number = 0; number < EACH; number++) {
		struct item *item = &items[who][number];

		item->producer = who;
		item->number = number;
		item->taken = 0;
		structure->put(who, item);
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void *consumes(void *argument)
{
	int who = (int)(long)argument, latest[PRODUCERS] = { -1, -1, -1, -1 };

	urcu_memb_register_thread();
	pthread_barrier_wait(&start);
	while (__atomic_load_n(&taken, __ATOMIC_RELAXED) < PRODUCERS * EACH) {
		struct item *item = structure->take(who);

		if (!item) {
			sched_yield();
			continue;
		}
		CHECK(item == &items[item->producer][item->number]);
		CHECK(__atomic_exchange_n(&item->taken, 1, __ATOMIC_RELAXED) == 0);
		if (structure->fifo)
			CHECK(item->number > latest[item->producer]);
		latest[item->producer] = item->number;
		__atomic_add_fetch(&taken, 1, __ATOMIC_RELAXED);
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void run(const struct structure *chosen)
{
	pthread_t threads[PRODUCERS + CONSUMERS];

	structure = chosen;
	taken = 0;
	for (long i = 0; i < PRODUCERS; i++)
		CHECK(pthread_create(&threads[i], NULL, produces, (void *)i) == 0);
	for (long i = 0; i < CONSUMERS; i++)
		CHECK(pthread_create(&threads[PRODUCERS + i], NULL, consumes, (void *)i) == 0);
	for (int i = 0; i < PRODUCERS + CONSUMERS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	CHECK(taken == PRODUCERS * EACH);
	printf("ok %s\n", chosen->name);
}

int main(void)
{
	static const struct structure structures[] = {
		{ "wfcqueue", 1, wfcq_put, wfcq_take },
		{ "wfqueue", 1, wfq_put, wfq_take },
		{ "wfstack", 0, wfs_put, wfs_take },
		{ "rculfqueue", 1, lfq_put, lfq_take },
	};

	CHECK(pthread_barrier_init(&start, NULL, PRODUCERS + CONSUMERS) == 0);
	cds_wfcq_init(&wfcq_head, &wfcq_tail);
	library_cds_wfq_init(&wfq);
	cds_wfs_init(&wfs);
	/* Made by what is inlined, ended by the library. */
	cds_lfq_init_rcu(&lfq, urcu_memb_call_rcu);
	for (unsigned int i = 0; i < sizeof(structures) / sizeof(structures[0]); i++)
		run(&structures[i]);
	urcu_memb_barrier();
	CHECK(library_cds_lfq_destroy_rcu(&lfq) == 0);
	CHECK(library_cds_wfcq_empty((cds_wfcq_head_ptr_t){ .h = &wfcq_head }, &wfcq_tail));
	return 0;
}
