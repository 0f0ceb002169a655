/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * defer_rcu of every flavour: pairs of a function and its argument, called after a grace period. Arguments and
 * functions of every bit pattern come back as they went in, also those with which liburcu's rings mark entries.
 */
#include "flavor.h"

/* Not in any header, but exported: called at the process's end. */
#ifdef __cplusplus
extern "C"
#endif
void rcu_defer_exit(void);

static long calls;
static uintptr_t sum;

static void add(void *argument)
{
	sum += (uintptr_t)argument;
	count_add(&calls, 1);
}

static void add_twice(void *argument)
{
	sum += 2 * (uintptr_t)argument;
	count_add(&calls, 1);
}

static void enter(void)
{
	calls = 0;
	sum = 0;
	rcu_register_thread();
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
}

static void leave(void)
{
	rcu_defer_unregister_thread();
	rcu_unregister_thread();
}

static uintptr_t last;

static void remember(void *argument)
{
	last = (uintptr_t)argument;
	count_add(&calls, 1);
}

CASE(arguments_of_any_bits)
{
	static const uintptr_t patterns[] = {
		0, 1, 2, 3, 4, 5, (uintptr_t)-1, (uintptr_t)-2, (uintptr_t)-3, (uintptr_t)-4,
		(uintptr_t)1 << 63, ((uintptr_t)1 << 63) | 1, 0x5555555555555555, 0xaaaaaaaaaaaaaaaa,
	};

	enter();
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		last = ~patterns[i];
		defer_rcu(remember, (void *)patterns[i]);
		rcu_defer_barrier_thread();
		CHECK_EQUAL(last, patterns[i]);
	}
	CHECK_EQUAL(count_of(&calls), sizeof(patterns) / sizeof(patterns[0]));
	/* The same, all in the ring at once. */
	calls = 0;
	uintptr_t expected = 0;
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		expected += patterns[i] * (1 + i % 2);
		defer_rcu(i % 2 ? add_twice : add, (void *)patterns[i]);
	}
	rcu_defer_barrier_thread();
	CHECK_EQUAL(count_of(&calls), sizeof(patterns) / sizeof(patterns[0]));
	CHECK_EQUAL(sum, expected);
	leave();
}

#if defined(__x86_64__)
void odd_function(void *argument);
void odd_function_target(void *argument);

__attribute__((used)) void odd_function_target(void *argument)
{
	remember(argument);
}

/* A function whose address has its lowest bit set: rings may use that bit for themselves. */
__asm__(".text\n\t.balign 16\n\tnop\n\t.globl odd_function\n\t.type odd_function, @function\n"
	"odd_function:\n\tjmp odd_function_target\n\t.size odd_function, .-odd_function\n\t.balign 16\n");

CASE(functions_at_odd_addresses)
{
	/* The compiler believes that functions are aligned. */
	void (*volatile odd)(void *) = odd_function;

	enter();
	CHECK_EQUAL((uintptr_t)odd & 1, 1);
	defer_rcu(odd, (void *)1);
	defer_rcu(add, (void *)3);
	defer_rcu(odd, (void *)(uintptr_t)-2);
	rcu_defer_barrier_thread();
	CHECK_EQUAL(count_of(&calls), 3);
	CHECK_EQUAL(last, (uintptr_t)-2);
	CHECK_EQUAL(sum, 3);
	leave();
}
#endif

CASE(more_than_a_ring_holds)
{
	enum { COUNT = 20000 };

	enter();
	for (uintptr_t i = 0; i < COUNT; i++) {
		defer_rcu(i % 3 ? add : add_twice, (void *)i);
		if (i % 64 == 0)
			rcu_quiescent_state();
	}
	rcu_defer_barrier_thread();
	CHECK_EQUAL(count_of(&calls), COUNT);
	leave();
}

static int section_left;

static void after_section(void *argument)
{
	struct held_section *held = argument;

	CHECK(flag_is_set(&held->left));
	flag_set(&section_left);
}

static void *barrier_run(void *argument)
{
	struct updater *updater = argument;

	__atomic_store_n(&updater->tid, thread_id(), __ATOMIC_SEQ_CST);
	rcu_defer_barrier();
	CHECK(flag_is_set(&section_left));
	flag_set(&updater->done);
	return NULL;
}

/* Also: one thread's barrier is for what another one has deferred. */
CASE(after_the_section)
{
	struct updater barrier = { 0 };
	struct held_section held = { 0 };

	held_section_start(&held);
	enter();
	section_left = 0;
	defer_rcu(after_section, &held);
	idle_begin();
	barrier.thread = thread_start(barrier_run, &barrier);
	await_asleep(&barrier.tid, &barrier.done);
	CHECK(!flag_is_set(&barrier.done));
	CHECK(!flag_is_set(&section_left));
	held_section_end(&held);
	thread_end(barrier.thread);
	CHECK(flag_is_set(&section_left));
	idle_end();
	leave();
}

CASE(called_without_a_barrier)
{
	enter();
	defer_rcu(add, (void *)8);
	idle_begin();
	WAIT_UNTIL(count_of(&calls) == 1);
	idle_end();
	leave();
}

CASE(leaving_loses_nothing)
{
	enter();
	for (uintptr_t i = 0; i < 100; i++)
		defer_rcu(add, (void *)i);
	leave();
	rcu_defer_barrier();
	CHECK_EQUAL(count_of(&calls), 100);
	CHECK_EQUAL(sum, 99 * 100 / 2);
}

CASE(registers_again)
{
	for (int round = 0; round < 3; round++) {
		enter();
		for (uintptr_t i = 0; i < 10; i++)
			defer_rcu(add, (void *)i);
		rcu_defer_barrier();
		CHECK_EQUAL(count_of(&calls), 10);
		leave();
	}
}

static pthread_key_t last_key;

static void defers_and_leaves(void *argument)
{
	defer_rcu(add, argument);
	leave();
	CHECK_EQUAL(count_of(&calls), 2);
}

static void *ends_registered(void *argument)
{
	enter();
	defer_rcu(add, argument);
	CHECK_EQUAL(pthread_setspecific(last_key, argument), 0);
	return NULL;
}

CASE(a_keys_destructor_defers_and_unregisters)
{
	CHECK_EQUAL(pthread_key_create(&last_key, defers_and_leaves), 0);
	thread_end(thread_start(ends_registered, &last_key));
	CHECK_EQUAL(count_of(&calls), 2);
	pthread_key_delete(last_key);
}

static void defers(void *argument)
{
	(void)argument;
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	for (uintptr_t i = 0; i < 3000; i++) {
		defer_rcu(add, (void *)1);
		if (i % 16 == 0)
			rcu_quiescent_state();
	}
	rcu_defer_barrier_thread();
	rcu_defer_unregister_thread();
}

CASE(from_many_threads)
{
	pthread_t threads[4];

	calls = 0;
	for (int i = 0; i < 4; i++)
		threads[i] = reader_start(defers, NULL);
	for (int i = 0; i < 4; i++)
		thread_end(threads[i]);
	rcu_defer_barrier();
	CHECK_EQUAL(count_of(&calls), 4 * 3000);
}

CASE(nothing_to_wait_for)
{
	rcu_defer_barrier();
	enter();
	rcu_defer_barrier_thread();
	rcu_defer_barrier();
	CHECK_EQUAL(calls, 0);
	leave();
	/* The library's own end, as its destructor does it: no thread is registered any more. */
	rcu_defer_exit();
}
