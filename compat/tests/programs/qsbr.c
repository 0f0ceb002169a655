/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What only QSBR has: a registered thread is a reader wherever it is online, and says itself where it holds nothing.
 */
#ifndef _LGPL_SOURCE
/* The exported read_lock and read_unlock, which assert something; without it the headers have them do nothing. */
#define DEBUG_RCU
#endif
#include "flavor.h"

/* Exported, in no header: the library's destructor. */
void urcu_qsbr_exit(void);

static void online_and_offline(void)
{
	rcu_register_thread();
	CHECK(rcu_read_ongoing());
	rcu_read_lock();
	rcu_read_unlock();
	CHECK(rcu_read_ongoing());
	rcu_thread_offline();
	CHECK(!rcu_read_ongoing());
	rcu_thread_online();
	CHECK(rcu_read_ongoing());
	rcu_quiescent_state();
	CHECK(rcu_read_ongoing());
	rcu_unregister_thread();
}

struct online_thread {
	int ready, quiesce, quiesced, leave;
	int goes_offline;
};

static void *online_thread_run(void *argument)
{
	struct online_thread *online = argument;

	rcu_register_thread();
	flag_set(&online->ready);
	flag_await(&online->quiesce);
	flag_set(&online->quiesced);
	if (online->goes_offline)
		rcu_thread_offline();
	else
		rcu_quiescent_state();
	flag_await(&online->leave);
	if (online->goes_offline)
		rcu_thread_online();
	rcu_unregister_thread();
	return NULL;
}

static void waits_until_quiescent(int goes_offline)
{
	struct online_thread online = { .goes_offline = goes_offline };
	struct updater updater = { 0 };
	pthread_t thread = thread_start(online_thread_run, &online);

	flag_await(&online.ready);
	/* An online thread is waited for without any read_lock. */
	updater_start(&updater);
	CHECK(!flag_is_set(&updater.done));
	flag_set(&online.quiesce);
	/* One quiescent state is enough: the thread does nothing more. */
	thread_end(updater.thread);
	CHECK(flag_is_set(&online.quiesced));
	flag_set(&online.leave);
	thread_end(thread);
}

static void one_quiescent_state_is_enough(void)
{
	waits_until_quiescent(0);
}

static void going_offline_is_enough(void)
{
	waits_until_quiescent(1);
}

static void *offline_thread_run(void *argument)
{
	struct online_thread *online = argument;

	rcu_register_thread();
	rcu_thread_offline();
	flag_set(&online->ready);
	flag_await(&online->leave);
	rcu_unregister_thread();
	return NULL;
}

static void nobody_waits_for_offline_threads(void)
{
	struct online_thread online = { 0 };
	pthread_t thread = thread_start(offline_thread_run, &online);

	flag_await(&online.ready);
	for (int i = 0; i < 50; i++)
		synchronize_rcu();
	flag_set(&online.leave);
	thread_end(thread);
}

static void *unregisters(void *argument)
{
	struct online_thread *online = argument;

	rcu_register_thread();
	flag_set(&online->ready);
	flag_await(&online->leave);
	rcu_unregister_thread();
	return NULL;
}

static void leaving_is_a_quiescent_state(void)
{
	struct online_thread online = { 0 };
	struct updater updater = { 0 };
	pthread_t thread = thread_start(unregisters, &online);

	flag_await(&online.ready);
	updater_start(&updater);
	CHECK(!flag_is_set(&updater.done));
	flag_set(&online.leave);
	thread_end(updater.thread);
	thread_end(thread);
}

static void an_online_thread_synchronizes(void)
{
	rcu_register_thread();
	for (int i = 0; i < 100; i++) {
		/* It waits for the others, not for itself, and comes back online. */
		synchronize_rcu();
		CHECK(rcu_read_ongoing());
	}
	rcu_thread_offline();
	synchronize_rcu();
	CHECK(!rcu_read_ongoing());
	rcu_thread_online();
	rcu_unregister_thread();
}

static void *takes_turns(void *argument)
{
	long *turns = argument;

	rcu_register_thread();
	for (int i = 0; i < 200; i++) {
		rcu_quiescent_state();
		if (i % 10 == 0) {
			rcu_thread_offline();
			rcu_thread_online();
		}
		count_add(turns, 1);
		sched_yield();
	}
	rcu_unregister_thread();
	return NULL;
}

static void grace_periods_among_busy_threads(void)
{
	pthread_t threads[3];
	long turns = 0;

	for (int i = 0; i < 3; i++)
		threads[i] = thread_start(takes_turns, &turns);
	for (int i = 0; i < 30; i++)
		synchronize_rcu();
	for (int i = 0; i < 3; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(turns, 600);
}

static void the_librarys_own_end(void)
{
	/* Asserts in liburcu that no thread is registered. */
	urcu_qsbr_exit();
}

CASES(
	CASE(online_and_offline),
	CASE(one_quiescent_state_is_enough),
	CASE(going_offline_is_enough),
	CASE(nobody_waits_for_offline_threads),
	CASE(leaving_is_a_quiescent_state),
	CASE(an_online_thread_synchronizes),
	CASE(grace_periods_among_busy_threads),
	CASE(the_librarys_own_end),
)
