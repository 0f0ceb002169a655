/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Children of forks beside what other threads do to call_rcu's workers. */
#include "../programs/flavor.h"
#include <urcu/rculfhash.h>

enum { HEADS = 100 };

static struct rcu_head heads[HEADS], another;
static struct call_rcu_data *worker;
static int ready, may_go_on;
static long called;

static void count(struct rcu_head *head)
{
	(void)head;
	count_add(&called, 1);
}

/* Ends with the process that waits for it: one that hangs is a failure. */
static pid_t child(void)
{
	pid_t process = fork();

	CHECK(process >= 0);
	if (!process)
		alarm(20);
	return process;
}

/* Runs f on a thread of its own, and returns when it has set `ready`. */
static pthread_t beside(void *(*f)(void *))
{
	pthread_t thread = thread_start(f, NULL);

	flag_await(&ready);
	return thread;
}

static void *stays_between_hooks(void *nothing)
{
	call_rcu_before_fork();
	flag_set(&ready);
	flag_await(&may_go_on);
	call_rcu_after_fork_parent();
	return nothing;
}

static void goes_on(void)
{
	long before = count_of(&called);

	call_rcu(&another, count);
	rcu_barrier();
	CHECK_EQUAL(count_of(&called), before + 1);
}

static int forked;

static void forks_with_hooks(void *nothing)
{
	(void)nothing;
	call_rcu_before_fork();
	pid_t process = child();
	if (!process) {
		call_rcu_after_fork_child();
		goes_on();
		child_leaves();
	}
	call_rcu_after_fork_parent();
	child_ended_well(process);
	forked++;
}

/* What another thread has paused is not paused in the child: it would be so for ever. */
static void forks_beside_hooks(int with_own)
{
	goes_on();
	pthread_t thread = beside(stays_between_hooks);
	if (with_own)
		call_rcu_before_fork();
	pid_t process = child();
	if (!process) {
		if (with_own)
			call_rcu_after_fork_child();
		goes_on();
		/* And what it pauses itself is. */
		forks_with_hooks(NULL);
		goes_on();
		child_leaves();
	}
	if (with_own)
		call_rcu_after_fork_parent();
	child_ended_well(process);
	flag_set(&may_go_on);
	thread_end(thread);
	goes_on();
}

CASE(beside_hooks)
{
	forks_beside_hooks(1);
}

CASE(beside_hooks_without)
{
	forks_beside_hooks(0);
}

/* By a worker of its own, or by the default one, which is made for the first of them. */
static void *queues(void *own)
{
	if (own) {
		worker = create_call_rcu_data(0, -1);
		set_thread_call_rcu_data(worker);
	}
	for (int each = 0; each < HEADS; each++)
		call_rcu(&heads[each], count);
	flag_set(&ready);
	return NULL;
}

static void *queues_by_its_own(void *nothing)
{
	(void)nothing;
	return queues(&worker);
}

static void forks_beside_a_new_worker(void *(*f)(void *))
{
	call_rcu_before_fork();
	pthread_t thread = beside(f);
	/* If it ran, it would do so by now, as a rule. */
	usleep(200000);
	CHECK_EQUAL(count_of(&called), 0);
	pid_t process = child();
	if (!process) {
		CHECK_EQUAL(count_of(&called), 0);
		call_rcu_after_fork_child();
		rcu_barrier();
		CHECK_EQUAL(count_of(&called), HEADS);
		goes_on();
		child_leaves();
	}
	call_rcu_after_fork_parent();
	child_ended_well(process);
	thread_end(thread);
	rcu_barrier();
	CHECK_EQUAL(count_of(&called), HEADS);
}

CASE(made_meanwhile)
{
	forks_beside_a_new_worker(queues_by_its_own);
}

CASE(default_made_meanwhile)
{
	forks_beside_a_new_worker(queues);
}

static void stays(struct rcu_head *head)
{
	(void)head;
	flag_set(&ready);
	flag_await(&may_go_on);
}

static void *frees(void *nothing)
{
	call_rcu_data_free(worker);
	return nothing;
}

/* Its worker is to end, and runs a callback still, when the process forks without any hooks. */
CASE(freed)
{
	static struct rcu_head long_one;

	worker = create_call_rcu_data(0, -1);
	set_thread_call_rcu_data(worker);
	call_rcu(&long_one, stays);
	flag_await(&ready);
	for (int each = 0; each < HEADS; each++)
		call_rcu(&heads[each], count);
	set_thread_call_rcu_data(NULL);
	pthread_t thread = thread_start(frees, NULL);
	/* Until it waits for the worker, or about to: either is a fault. */
	usleep(50000);
	pid_t process = child();
	if (!process) {
		call_rcu(&another, count);
		WAIT_UNTIL(count_of(&called) == HEADS + 1);
		goes_on();
		child_leaves();
	}
	child_ended_well(process);
	flag_set(&may_go_on);
	thread_end(thread);
	rcu_barrier();
	CHECK_EQUAL(count_of(&called), HEADS);
}

static pthread_key_t key;

static void *forks_now_and_at_its_end(void *nothing)
{
	CHECK_EQUAL(pthread_setspecific(key, &key), 0);
	forks_with_hooks(nothing);
	return nothing;
}

CASE(at_the_end_of_a_thread)
{
	CHECK_EQUAL(pthread_key_create(&key, forks_with_hooks), 0);
	thread_end(thread_start(forks_now_and_at_its_end, NULL));
	CHECK_EQUAL(forked, 2);
	goes_on();
}

static void is_gone(void *nothing)
{
	(void)nothing;
	check_failed(__FILE__, __LINE__, "called");
}

/* A table comes and goes while the program has hooks of its own. */
CASE(unregistered)
{
	struct urcu_atfork hooks = { is_gone, is_gone, is_gone, NULL };
	struct cds_lfht *table;

	urcu_register_rculfhash_atfork(&hooks);
	table = cds_lfht_new(1, 1, 0, CDS_LFHT_AUTO_RESIZE, NULL);
	CHECK_EQUAL(cds_lfht_destroy(table, NULL), 0);
	urcu_unregister_rculfhash_atfork(&hooks);
	forks_with_hooks(NULL);
}
