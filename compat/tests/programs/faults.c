/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Faults of liburcu 0.13 that are not to be found here: what waits there for ever, or for a timer. (A resize of the
 * hash table that is lost for good is in lfht.c.) A hang is what the fault looks like.
 */
#include "flavor.h"
#include <poll.h>
#include <sys/select.h>
#include <time.h>

/*
 * Sleeps on a timer: these stand before the system library's, for this program and for the libraries under it.
 * Nothing in this program calls them.
 */
static long timers;

int poll(struct pollfd *files, nfds_t count, int timeout)
{
	struct timespec time = { timeout / 1000, timeout % 1000 * 1000000L };

	if (timeout > 0)
		count_add(&timers, 1);
	return ppoll(files, count, timeout < 0 ? NULL : &time, NULL);
}

int usleep(useconds_t useconds)
{
	struct timespec time = { useconds / 1000000, useconds % 1000000 * 1000L };

	count_add(&timers, 1);
	return clock_nanosleep(CLOCK_MONOTONIC, 0, &time, NULL);
}

int nanosleep(const struct timespec *time, struct timespec *left)
{
	count_add(&timers, 1);
	return clock_nanosleep(CLOCK_REALTIME, 0, time, left);
}

static long ran;

static void callback(struct rcu_head *head)
{
	(void)head;
	count_add(&ran, 1);
}

/* In liburcu every batch of callbacks is followed by 10 ms of sleep, and so is every barrier. */
READER_CASE(no_callback_waits_for_a_timer)
{
	static struct rcu_head heads[20];

	ran = 0;
	timers = 0;
	for (int i = 0; i < 20; i++) {
		call_rcu(&heads[i], callback);
		rcu_barrier();
		CHECK_EQUAL(count_of(&ran), i + 1);
	}
	CHECK_EQUAL(count_of(&timers), 0);
}

/* The number of the system call that a thread of this process is in. */
static long system_call_of(pid_t thread)
{
	char path[64];
	long number = -1;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/syscall", (int)thread);
	file = fopen(path, "re");
	CHECK(file != NULL);
	CHECK_EQUAL(fscanf(file, "%ld", &number), 1);
	fclose(file);
	return number;
}

/*
 * In liburcu a bulletproof updater that finds a reader looks again every 10 ms. Ours cannot be woken by bp's inlined readers
 * either, and takes short naps; all others sleep until they are woken.
 */
CASE(no_grace_period_waits_for_a_timer)
{
	struct updater updater = { 0 };
	struct held_section held = { .done = &updater.done };

	timers = 0;
	held_section_start(&held);
	updater_start(&updater);
	if (!IS_BP)
		CHECK_EQUAL(system_call_of(updater.tid), SYS_futex);
	held_section_end(&held);
	thread_end(updater.thread);
	CHECK_EQUAL(count_of(&timers), 0);
}

static void newcomer(void *argument)
{
	section_begin();
	section_end();
	flag_set(argument);
}

/* A thread registers, reads and leaves while a grace period waits for somebody else's section. */
CASE(threads_register_beside_a_stalled_reader)
{
	struct updater updater = { 0 };
	struct held_section held = { .done = &updater.done };

	held_section_start(&held);
	updater_start(&updater);
	for (int i = 0; i < 10; i++) {
		int been = 0;

		thread_end(reader_start(newcomer, &been));
		CHECK(flag_is_set(&been));
	}
	CHECK(!flag_is_set(&updater.done));
	held_section_end(&held);
	thread_end(updater.thread);
}

static void nothing(void *argument)
{
	(void)argument;
}

static void defers_a_lot(void *argument)
{
	(void)argument;
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	/* Several rings full, and online all the while. */
	for (uintptr_t i = 0; i < 20000; i++)
		defer_rcu(nothing, (void *)(i * 8));
	rcu_defer_unregister_thread();
}

static void reclaims(void *argument)
{
	int *stop = argument;

	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	while (!flag_is_set(stop)) {
		defer_rcu(nothing, NULL);
		rcu_defer_barrier();
		rcu_quiescent_state();
	}
	rcu_defer_unregister_thread();
}

/* In liburcu's QSBR a thread that finds its ring full waits for a mutex whose holder waits for it. */
CASE(full_rings_while_others_reclaim)
{
	int stop = 0;
	pthread_t deferring[2], reclaiming = reader_start(reclaims, &stop);

	for (int i = 0; i < 2; i++)
		deferring[i] = reader_start(defers_a_lot, NULL);
	for (int i = 0; i < 2; i++)
		thread_end(deferring[i]);
	flag_set(&stop);
	thread_end(reclaiming);
}

/* The worker is bound to its CPU before its first callback; in liburcu after its 256th batch. */
static int cpu_of_callback;

static void where(struct rcu_head *head)
{
	(void)head;
	cpu_of_callback = sched_getcpu();
	count_add(&ran, 1);
}

READER_CASE(workers_are_bound_at_once)
{
	cpu_set_t allowed;

	CHECK_EQUAL(sched_getaffinity(0, sizeof(allowed), &allowed), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
		struct rcu_head head;

		if (!CPU_ISSET(cpu, &allowed))
			continue;
		struct call_rcu_data *worker = create_call_rcu_data(0, cpu);

		CHECK(worker != NULL);
		set_thread_call_rcu_data(worker);
		ran = 0;
		cpu_of_callback = -1;
		call_rcu(&head, where);
		rcu_barrier();
		CHECK_EQUAL(count_of(&ran), 1);
		CHECK_EQUAL(cpu_of_callback, cpu);
		set_thread_call_rcu_data(NULL);
		idle_begin();
		call_rcu_data_free(worker);
		idle_end();
	}
}
