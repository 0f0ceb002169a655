/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour as a structure of pointers, as hash tables take it: each pointer does what the function of its name
 * does, in a program that knows nothing else of the flavour.
 */
#include "flavor.h"

static const struct rcu_flavor_struct *volatile flavor = &rcu_flavor;

CASE(no_pointer_is_missing)
{
#ifdef LIBURCU_0_13
	CHECK_EQUAL(sizeof(struct rcu_flavor_struct), 112);
#else
	CHECK_EQUAL(sizeof(struct rcu_flavor_struct), 128);
#endif
	void *const *pointers = (void *const *)(const void *)flavor;
	/* A library of 0.13 has no more to copy. */
	size_t bytes = is_liburcu("0.13") ? 112 : sizeof(*flavor);

	for (size_t i = 0; i < bytes / sizeof(void *); i++)
		CHECK(pointers[i] != NULL);
}

struct reader {
	int inside, leave, left;
};

static void *reads(void *argument)
{
	struct reader *reader = argument;

	flavor->register_thread();
	flavor->thread_offline();
	CHECK(!IS_QSBR || !flavor->read_ongoing());
	flavor->thread_online();
	CHECK_EQUAL(!!flavor->read_ongoing(), IS_QSBR);
	flavor->read_lock();
	CHECK(flavor->read_ongoing());
	flag_set(&reader->inside);
	flag_await(&reader->leave);
	flag_set(&reader->left);
	flavor->read_unlock();
	flavor->read_quiescent_state();
	flavor->unregister_thread();
	return NULL;
}

static void *updates(void *argument)
{
	struct updater *updater = argument;

	__atomic_store_n(&updater->tid, thread_id(), __ATOMIC_SEQ_CST);
	flavor->update_synchronize_rcu();
	flag_set(&updater->done);
	return NULL;
}

CASE(readers_and_updaters)
{
	struct reader reader = { 0 };
	struct updater updater = { 0 };
	pthread_t thread = thread_start(reads, &reader);

	flag_await(&reader.inside);
	updater.thread = thread_start(updates, &updater);
	await_asleep(&updater.tid, &updater.done);
	CHECK(!flag_is_set(&updater.done));
	flag_set(&reader.leave);
	thread_end(updater.thread);
	CHECK(flag_is_set(&reader.left));
	thread_end(thread);
}

static long ran;

static void callback(struct rcu_head *head)
{
	(void)head;
	count_add(&ran, 1);
}

static void deferred(void *argument)
{
	count_add(&ran, (long)(intptr_t)argument);
}

CASE(callbacks)
{
	struct rcu_head head;

	ran = 0;
	flavor->register_thread();
	flavor->update_call_rcu(&head, callback);
	flavor->barrier();
	CHECK_EQUAL(count_of(&ran), 1);
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	flavor->update_defer_rcu(deferred, (void *)(intptr_t)10);
	rcu_defer_barrier_thread();
	CHECK_EQUAL(count_of(&ran), 11);
	rcu_defer_unregister_thread();
	flavor->unregister_thread();
}

static void count_hook(void *priv)
{
	++*(int *)priv;
}

CASE(fork_hooks)
{
	int called = 0;
	struct urcu_atfork hooks = { count_hook, count_hook, count_hook, &called };

	flavor->register_rculfhash_atfork(&hooks);
	call_rcu_before_fork();
	call_rcu_after_fork_parent();
	CHECK_EQUAL(called, 2);
	flavor->unregister_rculfhash_atfork(&hooks);
	call_rcu_before_fork();
	call_rcu_after_fork_parent();
	CHECK_EQUAL(called, 2);
}
