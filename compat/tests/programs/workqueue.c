/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The work queue that liburcu's hash table runs on: exported, though in no public header, so its interface is
 * declared here.
 */
#include "check.h"
#include <urcu/wfcqueue.h>
#include <urcu/compiler.h>

struct urcu_workqueue;
struct urcu_workqueue_completion;

struct urcu_work {
	struct cds_wfcq_node next;
	void (*func)(struct urcu_work *work);
};

enum { WORKQUEUE_RT = 1 };

typedef void (*workqueue_hook)(struct urcu_workqueue *workqueue, void *priv);

struct urcu_workqueue *urcu_workqueue_create(unsigned long flags, int cpu_affinity, void *priv,
		workqueue_hook grace_period, workqueue_hook initialize_worker, workqueue_hook finalize_worker,
		workqueue_hook worker_before_wait, workqueue_hook worker_after_wake_up,
		workqueue_hook worker_before_pause, workqueue_hook worker_after_resume);
void urcu_workqueue_destroy(struct urcu_workqueue *workqueue);
void urcu_workqueue_queue_work(struct urcu_workqueue *workqueue, struct urcu_work *work,
		void (*func)(struct urcu_work *work));
struct urcu_workqueue_completion *urcu_workqueue_create_completion(void);
void urcu_workqueue_destroy_completion(struct urcu_workqueue_completion *completion);
void urcu_workqueue_queue_completion(struct urcu_workqueue *workqueue, struct urcu_workqueue_completion *completion);
void urcu_workqueue_wait_completion(struct urcu_workqueue_completion *completion);
void urcu_workqueue_flush_queued_work(struct urcu_workqueue *workqueue);
void urcu_workqueue_pause_worker(struct urcu_workqueue *workqueue);
void urcu_workqueue_resume_worker(struct urcu_workqueue *workqueue);
void urcu_workqueue_create_worker(struct urcu_workqueue *workqueue);

struct work {
	struct urcu_work work;
	long *ran;
	long order;		/* when it ran, among the others */
	pthread_t on;
	int *gate;		/* to be awaited before it ends, or NULL */
};

static void run(struct urcu_work *queued)
{
	struct work *work = caa_container_of(queued, struct work, work);

	work->on = pthread_self();
	if (work->gate)
		flag_await(work->gate);
	work->order = count_add(work->ran, 1);
}

static struct urcu_workqueue *plain(unsigned long flags)
{
	struct urcu_workqueue *queue =
		urcu_workqueue_create(flags, -1, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);

	CHECK(queue != NULL);
	return queue;
}

CASE(runs_work_in_order)
{
	enum { COUNT = 1000 };
	static struct work works[COUNT];
	struct urcu_workqueue *queue = plain(0);
	long ran = 0;

	for (int i = 0; i < COUNT; i++) {
		works[i].ran = &ran;
		urcu_workqueue_queue_work(queue, &works[i].work, run);
	}
	urcu_workqueue_flush_queued_work(queue);
	CHECK_EQUAL(count_of(&ran), COUNT);
	for (int i = 0; i < COUNT; i++) {
		CHECK_EQUAL(works[i].order, i + 1);
		CHECK(!pthread_equal(works[i].on, pthread_self()));
		CHECK(pthread_equal(works[i].on, works[0].on));
	}
	urcu_workqueue_flush_queued_work(queue);
	urcu_workqueue_destroy(queue);
}

CASE(runs_work_unasked)
{
	struct urcu_workqueue *queues[2] = { plain(0), plain(WORKQUEUE_RT) };
	long ran = 0;
	struct work works[2] = { { .ran = &ran }, { .ran = &ran } };

	for (int round = 1; round <= 3; round++) {
		for (int i = 0; i < 2; i++)
			urcu_workqueue_queue_work(queues[i], &works[i].work, run);
		/* No thread flushes; an idle worker is woken. */
		WAIT_UNTIL(count_of(&ran) == 2 * round);
	}
	for (int i = 0; i < 2; i++) {
		urcu_workqueue_flush_queued_work(queues[i]);
		urcu_workqueue_destroy(queues[i]);
	}
}

CASE(completions)
{
	struct urcu_workqueue *queue = plain(0), *other = plain(0);
	long ran = 0;
	struct work works[20];
	struct urcu_workqueue_completion *both = urcu_workqueue_create_completion();

	CHECK(both != NULL);
	for (int i = 0; i < 20; i++) {
		works[i] = (struct work){ .ran = &ran };
		urcu_workqueue_queue_work(i % 2 ? queue : other, &works[i].work, run);
	}
	/* One completion for two queues. */
	urcu_workqueue_queue_completion(queue, both);
	urcu_workqueue_queue_completion(other, both);
	urcu_workqueue_wait_completion(both);
	CHECK_EQUAL(count_of(&ran), 20);
	urcu_workqueue_destroy_completion(both);
	/* Of nothing: over at once. */
	struct urcu_workqueue_completion *nothing = urcu_workqueue_create_completion();
	urcu_workqueue_wait_completion(nothing);
	urcu_workqueue_destroy_completion(nothing);
	urcu_workqueue_destroy(queue);
	urcu_workqueue_destroy(other);
}

static void *waits(void *argument)
{
	void **arguments = argument;

	urcu_workqueue_wait_completion(arguments[0]);
	flag_set(arguments[1]);
	return NULL;
}

CASE(a_completion_waits)
{
	struct urcu_workqueue *queue = plain(0);
	long ran = 0;
	int gate = 0, done = 0;
	struct work work = { .ran = &ran, .gate = &gate };
	struct urcu_workqueue_completion *completion = urcu_workqueue_create_completion();
	void *arguments[2] = { completion, &done };

	urcu_workqueue_queue_work(queue, &work.work, run);
	urcu_workqueue_queue_completion(queue, completion);
	pthread_t thread = thread_start(waits, arguments);
	let_others_run();
	CHECK(!flag_is_set(&done));
	flag_set(&gate);
	thread_end(thread);
	CHECK_EQUAL(count_of(&ran), 1);
	urcu_workqueue_destroy_completion(completion);
	urcu_workqueue_destroy(queue);
}

struct hooks {
	long grace_periods, initialized, finalized, waits, wakes, pauses, resumes;
	pthread_t worker;
};

#define HOOK(name, counter)							\
	static void name(struct urcu_workqueue *queue, void *priv)		\
	{									\
		CHECK(queue != NULL);						\
		count_add(&((struct hooks *)priv)->counter, 1);			\
	}

HOOK(on_grace_period, grace_periods)
HOOK(on_finalize, finalized)
HOOK(on_wait, waits)
HOOK(on_wake, wakes)
HOOK(on_pause, pauses)
HOOK(on_resume, resumes)

static void on_initialize(struct urcu_workqueue *queue, void *priv)
{
	struct hooks *hooks = priv;

	CHECK(queue != NULL);
	hooks->worker = pthread_self();
	count_add(&hooks->initialized, 1);
}

CASE(hooks_are_called)
{
	struct hooks hooks = { 0 };
	long ran = 0;
	struct work work = { .ran = &ran };
	struct urcu_workqueue *queue = urcu_workqueue_create(0, -1, &hooks, on_grace_period, on_initialize,
			on_finalize, on_wait, on_wake, on_pause, on_resume);

	urcu_workqueue_queue_work(queue, &work.work, run);
	urcu_workqueue_flush_queued_work(queue);
	CHECK_EQUAL(count_of(&hooks.initialized), 1);
	CHECK(pthread_equal(hooks.worker, work.on));
	/* A grace period before each batch. */
	CHECK(count_of(&hooks.grace_periods) >= 1);
	urcu_workqueue_pause_worker(queue);
	CHECK_EQUAL(count_of(&hooks.pauses), 1);
	CHECK_EQUAL(count_of(&hooks.resumes), 0);
	/* While it is paused nothing runs. */
	urcu_workqueue_queue_work(queue, &work.work, run);
	let_others_run();
	CHECK_EQUAL(count_of(&ran), 1);
	urcu_workqueue_resume_worker(queue);
	urcu_workqueue_flush_queued_work(queue);
	CHECK_EQUAL(count_of(&ran), 2);
	CHECK_EQUAL(count_of(&hooks.resumes), 1);
	CHECK_EQUAL(count_of(&hooks.finalized), 0);
	urcu_workqueue_destroy(queue);
	CHECK_EQUAL(count_of(&hooks.finalized), 1);
	CHECK(count_of(&hooks.waits) >= count_of(&hooks.wakes));
}

CASE(on_a_cpu)
{
	struct urcu_workqueue *queue =
		urcu_workqueue_create(0, 0, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
	long ran = 0;
	struct work work = { .ran = &ran };

	urcu_workqueue_queue_work(queue, &work.work, run);
	urcu_workqueue_flush_queued_work(queue);
	CHECK_EQUAL(count_of(&ran), 1);
	urcu_workqueue_destroy(queue);
}

static void *queues(void *argument)
{
	void **arguments = argument;
	struct work *works = arguments[1];

	for (int i = 0; i < 5000; i++)
		urcu_workqueue_queue_work(arguments[0], &works[i].work, run);
	urcu_workqueue_flush_queued_work(arguments[0]);
	return NULL;
}

CASE(from_many_threads)
{
	struct urcu_workqueue *queue = plain(0);
	long ran = 0;
	pthread_t threads[3];
	void *arguments[3][2];

	for (int i = 0; i < 3; i++) {
		struct work *works = calloc(5000, sizeof(*works));

		CHECK(works != NULL);
		for (int j = 0; j < 5000; j++)
			works[j].ran = &ran;
		arguments[i][0] = queue;
		arguments[i][1] = works;
		threads[i] = thread_start(queues, arguments[i]);
	}
	for (int i = 0; i < 3; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(count_of(&ran), 15000);
	urcu_workqueue_destroy(queue);
	for (int i = 0; i < 3; i++)
		free(arguments[i][1]);
}

/* Paused over a fork, made anew in the child: work queued before is done in both. */
CASE(across_a_fork)
{
	struct urcu_workqueue *queue = plain(0);
	long ran = 0;
	struct work works[2] = { { .ran = &ran }, { .ran = &ran } };

	urcu_workqueue_queue_work(queue, &works[0].work, run);
	urcu_workqueue_flush_queued_work(queue);
	urcu_workqueue_pause_worker(queue);
	urcu_workqueue_queue_work(queue, &works[1].work, run);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		urcu_workqueue_create_worker(queue);
		urcu_workqueue_flush_queued_work(queue);
		CHECK_EQUAL(count_of(&ran), 2);
		urcu_workqueue_queue_work(queue, &works[0].work, run);
		WAIT_UNTIL(count_of(&ran) == 3);
		urcu_workqueue_flush_queued_work(queue);
		urcu_workqueue_destroy(queue);
		child_leaves();
	}
	urcu_workqueue_resume_worker(queue);
	urcu_workqueue_flush_queued_work(queue);
	CHECK_EQUAL(count_of(&ran), 2);
	child_ended_well(child);
	urcu_workqueue_destroy(queue);
}
