/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* forks CASE: children of forks beside what other threads do to call_rcu's workers. */
#include "flavor.h"

#include <pthread.h>
#include <semaphore.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { HEADS = 100 };

static struct rcu_head heads[HEADS], another;
static struct call_rcu_data *worker;
static sem_t ready, may_go_on;
static int called;

static void count(struct rcu_head *head)
{
	(void) head;
	__atomic_fetch_add(&called, 1, __ATOMIC_SEQ_CST);
}

static int calls(void)
{
	return __atomic_load_n(&called, __ATOMIC_SEQ_CST);
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

static void ends_well(pid_t process)
{
	int status;

	CHECK(waitpid(process, &status, 0) == process);
	CHECK(status == 0);
}

/* Runs f on a thread of its own, and returns when it has posted `ready`. */
static pthread_t beside(void *(*f)(void *))
{
	pthread_t thread;

	CHECK(!pthread_create(&thread, NULL, f, NULL));
	sem_wait(&ready);
	return thread;
}

static void *stays_between_hooks(void *nothing)
{
	URCU(call_rcu_before_fork)();
	sem_post(&ready);
	sem_wait(&may_go_on);
	URCU(call_rcu_after_fork_parent)();
	return nothing;
}

static void goes_on(void)
{
	int before = calls();

	URCU(call_rcu)(&another, count);
	URCU(barrier)();
	CHECK(calls() == before + 1);
}

/* What another thread has paused is not paused in the child: it would be so for ever. */
static void beside_hooks(int with_own)
{
	pthread_t thread;
	pid_t process;

	goes_on();
	thread = beside(stays_between_hooks);
	if (with_own)
		URCU(call_rcu_before_fork)();
	process = child();
	if (!process) {
		if (with_own)
			URCU(call_rcu_after_fork_child)();
		goes_on();
		/* And what it pauses itself is. */
		URCU(call_rcu_before_fork)();
		process = child();
		if (!process) {
			URCU(call_rcu_after_fork_child)();
			goes_on();
			_exit(0);
		}
		URCU(call_rcu_after_fork_parent)();
		ends_well(process);
		goes_on();
		_exit(0);
	}
	if (with_own)
		URCU(call_rcu_after_fork_parent)();
	ends_well(process);
	sem_post(&may_go_on);
	pthread_join(thread, NULL);
	goes_on();
}

/* By a worker of its own, or by the default one, which is made for the first of them. */
static void *queues(void *own)
{
	if (own) {
		worker = URCU(create_call_rcu_data)(0, -1);
		URCU(set_thread_call_rcu_data)(worker);
	}
	for (int each = 0; each < HEADS; each++)
		URCU(call_rcu)(&heads[each], count);
	sem_post(&ready);
	return NULL;
}

static void *queues_by_its_own(void *nothing)
{
	(void) nothing;
	return queues(&worker);
}

static void made_meanwhile(void *(*f)(void *))
{
	pthread_t thread;
	pid_t process;

	URCU(call_rcu_before_fork)();
	thread = beside(f);
	/* If it ran, it would do so by now, as a rule. */
	usleep(200000);
	CHECK(calls() == 0);
	process = child();
	if (!process) {
		CHECK(calls() == 0);
		URCU(call_rcu_after_fork_child)();
		URCU(barrier)();
		CHECK(calls() == HEADS);
		goes_on();
		_exit(0);
	}
	URCU(call_rcu_after_fork_parent)();
	ends_well(process);
	pthread_join(thread, NULL);
	URCU(barrier)();
	CHECK(calls() == HEADS);
}

static void stays(struct rcu_head *head)
{
	(void) head;
	sem_post(&ready);
	sem_wait(&may_go_on);
}

static void *frees(void *nothing)
{
	URCU(call_rcu_data_free)(worker);
	return nothing;
}

/* Its worker is to end, and runs a callback still, when the process forks without any hooks. */
static void freed(void)
{
	static struct rcu_head long_one;
	pthread_t thread;
	pid_t process;

	worker = URCU(create_call_rcu_data)(0, -1);
	URCU(set_thread_call_rcu_data)(worker);
	URCU(call_rcu)(&long_one, stays);
	sem_wait(&ready);
	for (int each = 0; each < HEADS; each++)
		URCU(call_rcu)(&heads[each], count);
	URCU(set_thread_call_rcu_data)(NULL);
	CHECK(!pthread_create(&thread, NULL, frees, NULL));
	/* Until it waits for the worker, or about to: either is a fault. */
	usleep(50000);
	process = child();
	if (!process) {
		URCU(call_rcu)(&another, count);
		while (calls() != HEADS + 1)
			usleep(1000);
		goes_on();
		_exit(0);
	}
	ends_well(process);
	sem_post(&may_go_on);
	pthread_join(thread, NULL);
	URCU(barrier)();
	CHECK(calls() == HEADS);
}

int main(int argc, char **argv)
{
	const char *which = argc == 2 ? argv[1] : "";

	sem_init(&ready, 0, 0);
	sem_init(&may_go_on, 0, 0);
	if (!strcmp(which, "beside-hooks"))
		beside_hooks(1);
	else if (!strcmp(which, "beside-hooks-without"))
		beside_hooks(0);
	else if (!strcmp(which, "made-meanwhile"))
		made_meanwhile(queues_by_its_own);
	else if (!strcmp(which, "default-made-meanwhile"))
		made_meanwhile(queues);
	else if (!strcmp(which, "freed"))
		freed();
	else
		return 2;
	puts("ok");
	return 0;
}
