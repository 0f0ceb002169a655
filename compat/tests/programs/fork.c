/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Forks: between the hooks that liburcu's documentation names, a child continues with all that its parent could do:
 * reading, grace periods, callbacks on workers of each kind, what was queued before.
 */
#include "flavor.h"

static void before_fork(void)
{
	idle_begin();
	call_rcu_before_fork();
#if IS_BP
	urcu_bp_before_fork();
#endif
	idle_end();
}

static void after_fork_parent(void)
{
#if IS_BP
	urcu_bp_after_fork_parent();
#endif
	call_rcu_after_fork_parent();
}

static void after_fork_child(void)
{
#if IS_BP
	urcu_bp_after_fork_child();
#endif
	call_rcu_after_fork_child();
}

static long ran;

static void callback(struct rcu_head *head)
{
	(void)head;
	count_add(&ran, 1);
}

/* All that a process does with the library. */
static void everything(void)
{
	struct rcu_head head;
	struct updater updater = { 0 };
	struct held_section held = { .done = &updater.done };
	long before = count_of(&ran);

	rcu_read_lock();
	CHECK(rcu_read_ongoing());
	rcu_read_unlock();
	rcu_quiescent_state();
	synchronize_rcu();
	call_rcu(&head, callback);
	rcu_barrier();
	CHECK_EQUAL(count_of(&ran), before + 1);
	idle_begin();
	/* New threads, too. */
	held_section_start(&held);
	updater_start(&updater);
	CHECK(!flag_is_set(&updater.done));
	held_section_end(&held);
	thread_end(updater.thread);
	idle_end();
}

/* A child does that and ends well. The hook before the fork has been called. */
static void forked(void (*in_child)(void))
{
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		after_fork_child();
		in_child();
		child_leaves();
	}
	after_fork_parent();
	idle_begin();
	child_ended_well(child);
	idle_end();
}

static void fork_and_go_on(void (*in_child)(void))
{
	before_fork();
	forked(in_child);
	everything();
}

READER_CASE(with_nothing_used)
{
	fork_and_go_on(everything);
}

READER_CASE(with_workers_of_each_kind)
{
	struct call_rcu_data *own = create_call_rcu_data(0, -1);

	CHECK_EQUAL(create_all_cpu_call_rcu_data(0), 0);
	set_thread_call_rcu_data(own);
	everything();
	fork_and_go_on(everything);
	set_thread_call_rcu_data(NULL);
	everything();
	idle_begin();
	free_all_cpu_call_rcu_data();
	call_rcu_data_free(own);
	idle_end();
}

static struct rcu_head queued[100];

static void queued_is_run(void)
{
	rcu_barrier();
	CHECK_EQUAL(count_of(&ran), 100);
	everything();
}

/* What is queued while the workers are paused is run in the parent and in the child, once in each. */
READER_CASE(with_callbacks_queued)
{
	everything();
	ran = 0;
	before_fork();
	for (int i = 0; i < 100; i++)
		call_rcu(&queued[i], callback);
	CHECK_EQUAL(count_of(&ran), 0);
	forked(queued_is_run);
	queued_is_run();
}

static void grandchild(void)
{
	everything();
	fork_and_go_on(everything);
}

READER_CASE(a_child_forks)
{
	everything();
	fork_and_go_on(grandchild);
}

static int told_before, told_parent, told_child;

static void on_before_fork(void *priv)
{
	CHECK(priv == &told_before);
	told_before++;
}

static void on_parent(void *priv)
{
	CHECK(priv == &told_before);
	told_parent++;
}

static void on_child(void *priv)
{
	CHECK(priv == &told_before);
	told_child++;
}

static void told_as_a_child(void)
{
	CHECK_EQUAL(told_child, 1);
	CHECK_EQUAL(told_parent, 0);
	everything();
}

READER_CASE(hooks_of_the_hash_table)
{
	static struct urcu_atfork hooks = { on_before_fork, on_parent, on_child, &told_before };

	urcu_register_rculfhash_atfork(&hooks);
	before_fork();
	CHECK_EQUAL(told_before, 1);
	forked(told_as_a_child);
	CHECK_EQUAL(told_parent, 1);
	CHECK_EQUAL(told_child, 0);
	urcu_unregister_rculfhash_atfork(&hooks);
}

/*
 * A reader of another thread is inside a section when the process forks: it is not in the child, and no thread there may
 * wait for it. In liburcu's registered flavours it is waited for, for ever.
 */
READER_CASE(beside_another_threads_section)
{
	struct held_section held = { 0 };

	held_section_start(&held);
	before_fork();
	forked(everything);
	idle_begin();
	held_section_end(&held);
	idle_end();
	everything();
}

/* Most programs know of no hooks. Beside a worker that was not paused, the child still reads and waits. */
READER_CASE(without_hooks)
{
	everything();
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		rcu_read_lock();
		rcu_read_unlock();
		rcu_quiescent_state();
		synchronize_rcu();
		everything();
		child_leaves();
	}
	idle_begin();
	child_ended_well(child);
	idle_end();
	everything();
}
