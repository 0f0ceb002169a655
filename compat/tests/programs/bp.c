/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What only the "bulletproof" flavour has: threads register by reading and leave by ending, and a fork has hooks.
 */
#include "flavor.h"

#ifndef _LGPL_SOURCE
/* What the inlined readers call on their thread's first section. */
void urcu_bp_register(void);
#endif

static void *reads_unregistered(void *argument)
{
	struct held_section *held = argument;

	/* No thread has to be registered. */
	CHECK(!rcu_read_ongoing());
	rcu_read_lock();
	CHECK(rcu_read_ongoing());
	flag_set(&held->inside);
	flag_await(&held->leave);
	flag_set(&held->left);
	rcu_read_unlock();
	CHECK(!rcu_read_ongoing());
	return NULL;
}

static void reading_registers(void)
{
	struct held_section held = { 0 };
	struct updater updater = { 0 };

	held.thread = thread_start(reads_unregistered, &held);
	flag_await(&held.inside);
	updater_start(&updater);
	CHECK(!flag_is_set(&updater.done));
	flag_set(&held.leave);
	thread_end(updater.thread);
	CHECK(flag_is_set(&held.left));
	thread_end(held.thread);
}

static void *reads_once(void *argument)
{
	(void)argument;
	rcu_read_lock();
	rcu_read_unlock();
	return NULL;
}

static void ending_unregisters(void)
{
	/* More threads than any first table of records holds; their stacks come again, their records must as well. */
	for (int i = 0; i < 300; i++) {
		thread_end(thread_start(reads_once, NULL));
		if (i % 100 == 0)
			synchronize_rcu();
	}
	synchronize_rcu();
}

static void many_at_once(void)
{
	enum { THREADS = 40 };
	struct held_section held[THREADS];

	memset(held, 0, sizeof(held));
	for (int i = 0; i < THREADS; i++) {
		held[i].thread = thread_start(reads_unregistered, &held[i]);
		flag_await(&held[i].inside);
	}
	struct updater updater = { 0 };
	updater_start(&updater);
	for (int i = 0; i < THREADS; i++) {
		CHECK(!flag_is_set(&updater.done));
		flag_set(&held[i].leave);
		thread_end(held[i].thread);
	}
	thread_end(updater.thread);
}

static void registered_by_hand(void)
{
	rcu_register_thread();
	CHECK(!rcu_read_ongoing());
	rcu_register_thread();
	rcu_read_lock();
	CHECK(rcu_read_ongoing());
	rcu_read_unlock();
	rcu_unregister_thread();
	rcu_read_lock();
	rcu_read_unlock();
}

static void *registers_as_inlined_readers_do(void *argument)
{
	(void)argument;
#ifndef _LGPL_SOURCE
	urcu_bp_register();
#endif
	CHECK(!rcu_read_ongoing());
	rcu_read_lock();
	rcu_read_unlock();
	return NULL;
}

static void registered_as_by_inlined_readers(void)
{
	thread_end(thread_start(registers_as_inlined_readers_do, NULL));
	synchronize_rcu();
}

static void *synchronizes_unregistered(void *argument)
{
	(void)argument;
	synchronize_rcu();
	/* Waiting is not reading. */
	CHECK(!rcu_read_ongoing());
	return NULL;
}

static void updaters_need_not_register(void)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		threads[i] = thread_start(synchronizes_unregistered, NULL);
	for (int i = 0; i < 3; i++)
		thread_end(threads[i]);
}

static void child_of_a_reader(int with_section)
{
	struct held_section held = { 0 };

	if (with_section) {
		held.thread = thread_start(reads_unregistered, &held);
		flag_await(&held.inside);
	}
	rcu_read_lock();
	rcu_read_unlock();
	urcu_bp_before_fork();
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		urcu_bp_after_fork_child();
		/* The other thread, and its section, are not here. */
		synchronize_rcu();
		rcu_read_lock();
		CHECK(rcu_read_ongoing());
		rcu_read_unlock();
		synchronize_rcu();
		child_leaves();
	}
	urcu_bp_after_fork_parent();
	child_ended_well(child);
	if (with_section) {
		flag_set(&held.leave);
		thread_end(held.thread);
	}
	rcu_read_lock();
	rcu_read_unlock();
	synchronize_rcu();
}

static void fork_alone(void)
{
	child_of_a_reader(0);
}

static void fork_beside_a_section(void)
{
	child_of_a_reader(1);
}

static void a_section_goes_on_in_the_child(void)
{
	rcu_read_lock();
	urcu_bp_before_fork();
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		struct updater updater = { 0 };

		urcu_bp_after_fork_child();
		CHECK(rcu_read_ongoing());
		updater_start(&updater);
		CHECK(!flag_is_set(&updater.done));
		rcu_read_unlock();
		thread_end(updater.thread);
		child_leaves();
	}
	urcu_bp_after_fork_parent();
	rcu_read_unlock();
	child_ended_well(child);
	synchronize_rcu();
}

/* While the hooks hold, signals wait: a handler that reads must not meet a half-copied library. */
static void signals_wait_for_the_fork(void)
{
	sigset_t before, during, after;

	CHECK_EQUAL(pthread_sigmask(SIG_SETMASK, NULL, &before), 0);
	urcu_bp_before_fork();
	CHECK_EQUAL(pthread_sigmask(SIG_SETMASK, NULL, &during), 0);
	urcu_bp_after_fork_parent();
	CHECK_EQUAL(pthread_sigmask(SIG_SETMASK, NULL, &after), 0);
	CHECK(!sigismember(&before, SIGUSR1));
	CHECK(sigismember(&during, SIGUSR1));
	CHECK(!sigismember(&after, SIGUSR1));
}

CASES(
	CASE(reading_registers),
	CASE(ending_unregisters),
	CASE(many_at_once),
	CASE(registered_by_hand),
	CASE(registered_as_by_inlined_readers),
	CASE(updaters_need_not_register),
	CASE(fork_alone),
	CASE(fork_beside_a_section),
	CASE(a_section_goes_on_in_the_child),
	CASE(signals_wait_for_the_fork),
)
