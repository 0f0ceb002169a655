/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread has found its CPU's worker, and is stopped before it pushes: its head lies in a page
 * that it may not touch. Meanwhile the worker is taken out and freed. What it pushes then is waited
 * for by rcu_barrier().
 */
#include "flavor.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static struct rcu_head *head;
static sem_t pushing, reading, over;
static int called;

/* No longer than that: what is waited for comes too late where all is well. */
static void wait_a_while(sem_t *semaphore)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += 300000000;
	until.tv_sec += until.tv_nsec / 1000000000;
	until.tv_nsec %= 1000000000;
	sem_timedwait(semaphore, &until);
}

static void is_stopped(int signal)
{
	(void) signal;
	sem_post(&pushing);
	wait_a_while(&over);
	mprotect(head, sizeof(*head), PROT_READ | PROT_WRITE);
}

static void count(struct rcu_head *one)
{
	(void) one;
	__atomic_fetch_add(&called, 1, __ATOMIC_SEQ_CST);
}

static void *pushes(void *nothing)
{
	URCU(call_rcu)(head, count);
	return nothing;
}

/* Nothing runs before a barrier that waits for it. */
static void *reads(void *nothing)
{
	URCU(register_thread)();
	URCU(read_lock)();
	sem_post(&reading);
	wait_a_while(&over);
	URCU(read_unlock)();
	URCU(unregister_thread)();
	return nothing;
}

int main(void)
{
	struct call_rcu_data *worker = URCU(create_call_rcu_data)(0, -1);
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	struct sigaction action = { .sa_handler = is_stopped };
	pthread_t pusher, reader;

	head = mmap(NULL, sizeof(*head), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(head != MAP_FAILED);
	sem_init(&pushing, 0, 0);
	sem_init(&reading, 0, 0);
	sem_init(&over, 0, 0);
	CHECK(!sigaction(SIGSEGV, &action, NULL));
	for (long cpu = 0; cpu < cpus; cpu++)
		CHECK(!URCU(set_cpu_call_rcu_data)(cpu, worker));

	CHECK(!pthread_create(&pusher, NULL, pushes, NULL));
	sem_wait(&pushing);
	for (long cpu = 0; cpu < cpus; cpu++)
		CHECK(!URCU(set_cpu_call_rcu_data)(cpu, NULL));
	URCU(synchronize_rcu)();
	CHECK(!pthread_create(&reader, NULL, reads, NULL));
	sem_wait(&reading);
	URCU(call_rcu_data_free)(worker);
	CHECK(!pthread_join(pusher, NULL));
	URCU(barrier)();
	CHECK(__atomic_load_n(&called, __ATOMIC_SEQ_CST) == 1);
	sem_post(&over);
	CHECK(!pthread_join(reader, NULL));
	puts("ok");
	return 0;
}
