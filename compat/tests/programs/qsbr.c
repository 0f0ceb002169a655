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

READER_CASE(online_and_offline)
{
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
}

enum way { STAYS, GOES_OFFLINE, UNREGISTERS };

struct online_thread {
	int ready, quiesce, quiesced, leave;
	enum way way;
};

static void online_thread_run(void *argument)
{
	struct online_thread *online = argument;

	flag_set(&online->ready);
	flag_await(&online->quiesce);
	flag_set(&online->quiesced);
	if (online->way == UNREGISTERS)
		return;
	if (online->way == GOES_OFFLINE)
		rcu_thread_offline();
	else
		rcu_quiescent_state();
	flag_await(&online->leave);
	if (online->way == GOES_OFFLINE)
		rcu_thread_online();
}

static void waits_until_quiescent(enum way way)
{
	struct online_thread online = { .way = way };
	struct updater updater = { 0 };
	pthread_t thread = reader_start(online_thread_run, &online);

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

CASE(one_quiescent_state_is_enough)
{
	waits_until_quiescent(STAYS);
}

CASE(going_offline_is_enough)
{
	waits_until_quiescent(GOES_OFFLINE);
}

CASE(leaving_is_a_quiescent_state)
{
	waits_until_quiescent(UNREGISTERS);
}

static void takes_turns(void *argument)
{
	long *turns = argument;

	for (int i = 0; i < 200; i++) {
		rcu_quiescent_state();
		if (i % 10 == 0) {
			rcu_thread_offline();
			rcu_thread_online();
		}
		count_add(turns, 1);
		sched_yield();
	}
}

CASE(grace_periods_among_busy_threads)
{
	pthread_t threads[3];
	long turns = 0;

	for (int i = 0; i < 3; i++)
		threads[i] = reader_start(takes_turns, &turns);
	for (int i = 0; i < 30; i++)
		synchronize_rcu();
	for (int i = 0; i < 3; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(turns, 600);
}

CASE(the_librarys_own_end)
{
	/* Asserts in liburcu that no thread is registered. */
	urcu_qsbr_exit();
}
