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

CASE(reading_registers)
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

CASE(registered_by_hand)
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

CASE(registered_as_by_inlined_readers)
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

CASE(updaters_need_not_register)
{
	pthread_t threads[3];

	for (int i = 0; i < 3; i++)
		threads[i] = thread_start(synchronizes_unregistered, NULL);
	for (int i = 0; i < 3; i++)
		thread_end(threads[i]);
}

CASE(a_section_goes_on_in_the_child)
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
