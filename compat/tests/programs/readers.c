/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers of every flavour: sections nest, a grace period waits for the sections that were there before it and for
 * no others, threads register and leave at any time.
 */
#include "flavor.h"

READER_CASE(nesting)
{
	/* A QSBR thread is a reader wherever it is online. */
	CHECK_EQUAL(!!rcu_read_ongoing(), IS_QSBR);
	rcu_read_lock();
	CHECK(rcu_read_ongoing());
	rcu_read_lock();
	CHECK(rcu_read_ongoing());
	rcu_read_unlock();
	CHECK(rcu_read_ongoing());
	rcu_read_unlock();
	CHECK_EQUAL(!!rcu_read_ongoing(), IS_QSBR);
	for (int depth = 0; depth < 10000; depth++)
		rcu_read_lock();
	CHECK(rcu_read_ongoing());
	for (int depth = 0; depth < 10000; depth++)
		rcu_read_unlock();
	CHECK_EQUAL(!!rcu_read_ongoing(), IS_QSBR);
}

CASE(waits_for_a_section)
{
	struct updater updater = { 0 };
	struct held_section held = { .done = &updater.done };

	held_section_start(&held);
	updater_start(&updater);
	CHECK(!flag_is_set(&updater.done));
	held_section_end(&held);
	thread_end(updater.thread);
	CHECK(flag_is_set(&updater.done));
}

CASE(inner_unlock_ends_nothing)
{
	struct updater updater = { 0 };
	struct held_section held = { .depth = 3, .done = &updater.done };

	held_section_start(&held);
	updater_start(&updater);
	CHECK(!flag_is_set(&updater.done));
	held_section_end(&held);
	thread_end(updater.thread);
}

struct late_reader {
	int ready, go, inside, leave;
};

static void late_reader_run(void *argument)
{
	struct late_reader *late = argument;

	idle_begin();
	flag_set(&late->ready);
	flag_await(&late->go);
	idle_end();
	section_begin();
	flag_set(&late->inside);
	flag_await(&late->leave);
	section_end();
}

CASE(later_sections_are_not_waited_for)
{
	struct updater updater = { 0 };
	struct held_section held = { .done = &updater.done };
	struct late_reader late = { 0 };
	pthread_t late_thread = reader_start(late_reader_run, &late);

	flag_await(&late.ready);
	held_section_start(&held);
	updater_start(&updater);
	flag_set(&late.go);
	flag_await(&late.inside);
	held_section_end(&held);
	/* The late reader is inside its section all the while: to wait for it is to hang here. */
	thread_end(updater.thread);
	flag_set(&late.leave);
	thread_end(late_thread);
}

CASE(waits_for_every_section)
{
	struct updater updater = { 0 };
	struct held_section held[4];

	memset(held, 0, sizeof(held));
	for (int i = 0; i < 4; i++) {
		held[i].done = &updater.done;
		held_section_start(&held[i]);
	}
	updater_start(&updater);
	for (int i = 0; i < 4; i++) {
		CHECK(!flag_is_set(&updater.done));
		held_section_end(&held[i]);
	}
	thread_end(updater.thread);
}

/* What readers find must be alive until they leave. */
struct object {
	long alive;
	long copy;
};

struct storm {
	struct object *current;
	int stop;
	int readers_ready;
	long sections;
};

static void storm_reader(void *argument)
{
	struct storm *storm = argument;
	long sections = 0;

	__atomic_add_fetch(&storm->readers_ready, 1, __ATOMIC_SEQ_CST);
	while (!flag_is_set(&storm->stop)) {
		section_begin();
		struct object *object = rcu_dereference(storm->current);
		CHECK_EQUAL(__atomic_load_n(&object->alive, __ATOMIC_RELAXED), 1);
		if (sections % 64 == 0)
			sched_yield();
		CHECK_EQUAL(__atomic_load_n(&object->alive, __ATOMIC_RELAXED), 1);
		CHECK_EQUAL(object->copy, 42);
		section_end();
		sections++;
	}
	count_add(&storm->sections, sections);
}

CASE(nothing_found_is_reclaimed)
{
	enum { ROUNDS = 40, READERS = 3 };
	static struct object objects[ROUNDS + 1];
	struct storm storm = { .current = &objects[0] };
	pthread_t readers[READERS];

	for (int i = 0; i <= ROUNDS; i++)
		objects[i] = (struct object){ .alive = 1, .copy = 42 };
	for (int i = 0; i < READERS; i++)
		readers[i] = reader_start(storm_reader, &storm);
	WAIT_UNTIL(__atomic_load_n(&storm.readers_ready, __ATOMIC_SEQ_CST) == READERS);
	for (int i = 1; i <= ROUNDS; i++) {
		struct object *old = rcu_xchg_pointer(&storm.current, &objects[i]);

		synchronize_rcu();
		__atomic_store_n(&old->alive, 0, __ATOMIC_RELAXED);
	}
	flag_set(&storm.stop);
	for (int i = 0; i < READERS; i++)
		thread_end(readers[i]);
	CHECK(count_of(&storm.sections) > 0);
}

static void *comes_and_goes(void *argument)
{
	long *sections = argument;

	for (int i = 0; i < 100; i++) {
		rcu_register_thread();
		section_begin();
		count_add(sections, 1);
		section_end();
		rcu_unregister_thread();
	}
	return NULL;
}

CASE(threads_come_and_go)
{
	pthread_t threads[4];
	long sections = 0;

	for (int i = 0; i < 4; i++)
		threads[i] = thread_start(comes_and_goes, &sections);
	for (int i = 0; i < 20; i++)
		synchronize_rcu();
	for (int i = 0; i < 4; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(count_of(&sections), 400);
	/* None of them is waited for any more. */
	synchronize_rcu();
}

static void reader_that_synchronizes(void *argument)
{
	long *grace_periods = argument;

	for (int i = 0; i < 20; i++) {
		section_begin();
		section_end();
		synchronize_rcu();
		/* A QSBR thread is as online after it as before. */
		CHECK_EQUAL(!!rcu_read_ongoing(), IS_QSBR);
		count_add(grace_periods, 1);
	}
	idle_begin();
	synchronize_rcu();
	CHECK(!rcu_read_ongoing());
	idle_end();
}

CASE(readers_synchronize_at_once)
{
	pthread_t threads[3];
	long grace_periods = 0;

	for (int i = 0; i < 3; i++)
		threads[i] = reader_start(reader_that_synchronizes, &grace_periods);
	for (int i = 0; i < 3; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(grace_periods, 60);
}

/* An idle reader holds nothing up, whatever it did before. */
static void idle_reader(void *argument)
{
	struct late_reader *late = argument;

	section_begin();
	section_end();
	idle_begin();
	flag_set(&late->ready);
	flag_await(&late->leave);
	idle_end();
}

CASE(idle_readers_hold_nothing_up)
{
	struct late_reader late = { 0 };
	pthread_t thread = reader_start(idle_reader, &late);

	flag_await(&late.ready);
	for (int i = 0; i < 20; i++)
		synchronize_rcu();
	flag_set(&late.leave);
	thread_end(thread);
}

#if !IS_BP
static struct held_section last;
static pthread_key_t last_key;

static void reads_and_unregisters(void *argument)
{
	(void)argument;
	section_begin();
	flag_set(&last.inside);
	flag_await(&last.leave);
	section_end();
	rcu_unregister_thread();
}

static void *ends_registered(void *argument)
{
	rcu_register_thread();
	CHECK_EQUAL(pthread_setspecific(last_key, argument), 0);
	return NULL;
}

/* Made after the libraries were loaded: it comes after their keys in each round. */
CASE(a_keys_destructor_reads_and_unregisters)
{
	struct updater updater = { 0 };

	CHECK_EQUAL(pthread_key_create(&last_key, reads_and_unregisters), 0);
	last.thread = thread_start(ends_registered, &last);
	flag_await(&last.inside);
	updater_start(&updater);
	CHECK(!flag_is_set(&updater.done));
	held_section_end(&last);
	thread_end(updater.thread);
	pthread_key_delete(last_key);
}
#endif

CASE(initialised_by_hand)
{
#if !IS_QSBR
	/* For constructors that come before the library's. More than once is once. */
	rcu_init();
	rcu_init();
#endif
	synchronize_rcu();
}

#ifdef FLAVOR_SIGNAL
/* Exported, in no header: the library's destructor. */
void urcu_signal_exit(void);

CASE(the_librarys_own_end)
{
	/* Asserts in liburcu that no thread is registered. */
	urcu_signal_exit();
}
#endif
