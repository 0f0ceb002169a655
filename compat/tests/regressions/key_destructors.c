/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Threads that use the library in the destructor of a key alone, which comes after those of
 * thread-local variables: of each of them next to nothing is left.
 */
#include "../programs/flavor.h"
#include <malloc.h>

static struct rcu_head head;
static long called;

static void count(struct rcu_head *unused)
{
	(void)unused;
	count_add(&called, 1);
}

static void count_deferred(void *unused)
{
	(void)unused;
	count_add(&called, 1);
}

static void queues(void *unused)
{
	(void)unused;
	call_rcu(&head, count);
}

static void defers(void *unused)
{
	defer_rcu(count_deferred, unused);
}

static void defers_as_registered(void *unused)
{
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	defer_rcu(count_deferred, unused);
	rcu_defer_unregister_thread();
}

static pthread_key_t key;

/* The library's own destructor comes in between. */
static void defers_and_waits_in_the_next_round(void *round)
{
	if (round == &key) {
		CHECK_EQUAL(rcu_defer_register_thread(), 0);
		defer_rcu(count_deferred, NULL);
		CHECK_EQUAL(pthread_setspecific(key, &called), 0);
		return;
	}
	rcu_defer_unregister_thread();
	CHECK_EQUAL(count_of(&called), 1);
}

static void *sets_the_key(void *unused)
{
	CHECK_EQUAL(pthread_setspecific(key, &key), 0);
	return unused;
}

/* Runs so many, one after the other. Returns how much memory is in use afterwards. */
static size_t in_use_after(int threads)
{
	for (int each = 0; each < threads; each++) {
		thread_end(thread_start(sets_the_key, NULL));
		rcu_barrier();
		rcu_defer_barrier();
	}
	return mallinfo2().uordblks;
}

static void leaves_little(void (*destructor)(void *))
{
	enum { FIRST = 100, THREADS = 1000, BYTES_LEFT = 256 };

	CHECK_EQUAL(pthread_key_create(&key, destructor), 0);
	size_t before = in_use_after(FIRST);
	CHECK(in_use_after(THREADS) < before + THREADS * BYTES_LEFT);
	CHECK_EQUAL(count_of(&called), FIRST + THREADS);
}

CASE(deferred)
{
	leaves_little(defers);
}

CASE(deferred_as_registered)
{
	leaves_little(defers_as_registered);
}

CASE(queued_for_a_cpu)
{
	CHECK_EQUAL(create_all_cpu_call_rcu_data(0), 0);
	leaves_little(queues);
}

CASE(waited_for_in_the_next_round)
{
	CHECK_EQUAL(pthread_key_create(&key, defers_and_waits_in_the_next_round), 0);
	thread_end(thread_start(sets_the_key, NULL));
	CHECK_EQUAL(count_of(&called), 1);
}
