/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A handler of fork() that pauses a work queue, as liburcu's hash table has one, installed before
 * a flavour's library is loaded: it runs when those of that library have run.
 */
#include "../programs/check.h"
#include <dlfcn.h>
#include <urcu/wfcqueue.h>

struct urcu_workqueue;

struct urcu_work {
	struct cds_wfcq_node next;
	void (*func)(struct urcu_work *work);
};

typedef void (*hook)(struct urcu_workqueue *queue, void *private_data);

struct urcu_workqueue *urcu_workqueue_create(unsigned long flags, int cpu, void *private_data,
		hook grace_period, hook begin, hook end, hook before_wait, hook after_wait,
		hook before_pause, hook after_pause);
void urcu_workqueue_queue_work(struct urcu_workqueue *queue, struct urcu_work *work,
		void (*func)(struct urcu_work *work));
void urcu_workqueue_flush_queued_work(struct urcu_workqueue *queue);
void urcu_workqueue_pause_worker(struct urcu_workqueue *queue);
void urcu_workqueue_resume_worker(struct urcu_workqueue *queue);
void urcu_workqueue_create_worker(struct urcu_workqueue *queue);

static struct urcu_workqueue *queue;
static long ran;

static void pause_it(void)
{
	urcu_workqueue_pause_worker(queue);
}

static void resume_it(void)
{
	urcu_workqueue_resume_worker(queue);
}

static void create_its_worker(void)
{
	urcu_workqueue_create_worker(queue);
}

static void run(struct urcu_work *work)
{
	(void)work;
	count_add(&ran, 1);
}

static void works(long times)
{
	struct urcu_work work;

	urcu_workqueue_queue_work(queue, &work, run);
	urcu_workqueue_flush_queued_work(queue);
	CHECK_EQUAL(count_of(&ran), times);
}

CASE(pauses_in_a_fork)
{
	/* A fork that hangs ends the process. */
	alarm(30);
	queue = urcu_workqueue_create(0, -1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	CHECK_EQUAL(pthread_atfork(pause_it, resume_it, create_its_worker), 0);
	works(1);
	CHECK(dlopen("liburcu-memb.so.8", RTLD_NOW) != NULL);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(30);
		works(2);
		child_leaves();
	}
	works(2);
	child_ended_well(child);
}
