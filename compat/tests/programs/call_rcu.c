/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * call_rcu of every flavour: callbacks run once, after a grace period, on the worker that they were given to; workers
 * are made, looked up, assigned, bound to CPUs, freed and joined; rcu_barrier waits for everybody's callbacks.
 */
#include "flavor.h"

struct item {
	struct rcu_head head;
	long *ran;
	pthread_t *on;		/* where to say which thread ran it, or NULL */
	int *done;		/* set last, or NULL */
	int again;		/* how often it queues itself once more */
	int *must_be_set;	/* a section's end that it must come after, or NULL */
};

static void item_run(struct rcu_head *head)
{
	struct item *item = caa_container_of(head, struct item, head);

	if (item->must_be_set)
		CHECK(flag_is_set(item->must_be_set));
	if (item->on)
		*item->on = pthread_self();
	count_add(item->ran, 1);
	if (item->again-- > 0)
		call_rcu(head, item_run);
	else if (item->done)
		flag_set(item->done);
}

static void waits_for_the_callback(int *done)
{
	idle_begin();
	flag_await(done);
	idle_end();
}

CASE(after_the_section)
{
	long ran = 0;
	struct updater updater = { 0 };
	struct held_section held = { 0 };
	struct item item = { .ran = &ran, .must_be_set = &held.left };

	held_section_start(&held);
	rcu_register_thread();
	call_rcu(&item.head, item_run);
	rcu_unregister_thread();
	/* A thread that waits for that section now waits in vain, and so must the worker. */
	updater_start(&updater);
	let_others_run();
	CHECK_EQUAL(count_of(&ran), 0);
	held_section_end(&held);
	thread_end(updater.thread);
	rcu_barrier();
	CHECK_EQUAL(count_of(&ran), 1);
}

READER_CASE(from_a_section)
{
	long ran = 0;
	struct item items[10];

	for (int i = 0; i < 10; i++) {
		items[i] = (struct item){ .ran = &ran };
		rcu_read_lock();
		call_rcu(&items[i].head, item_run);
		rcu_read_unlock();
	}
	rcu_quiescent_state();
	rcu_barrier();
	CHECK_EQUAL(count_of(&ran), 10);
}

READER_CASE(a_callback_queues_itself_again)
{
	long ran = 0;
	int done = 0;
	struct item item = { .ran = &ran, .done = &done, .again = 3 };

	call_rcu(&item.head, item_run);
	waits_for_the_callback(&done);
	CHECK_EQUAL(count_of(&ran), 4);
}

static void in_a_callback(struct rcu_head *head)
{
	struct item *item = caa_container_of(head, struct item, head);

	/* A callback's thread is a reader like any other. */
	rcu_read_lock();
	CHECK(rcu_read_ongoing());
	rcu_read_unlock();
	CHECK(get_call_rcu_data() != NULL);
	flag_set(item->done);
}

READER_CASE(a_callback_may_read)
{
	int done = 0;
	struct item item = { .done = &done };

	call_rcu(&item.head, in_a_callback);
	waits_for_the_callback(&done);
}

struct producer {
	struct item *items;
	int count;
	long *ran;
	pthread_t thread;
	struct call_rcu_data *worker;
};

static void produce(void *argument)
{
	struct producer *producer = argument;

	set_thread_call_rcu_data(producer->worker);
	for (int i = 0; i < producer->count; i++) {
		producer->items[i] = (struct item){ .ran = producer->ran };
		call_rcu(&producer->items[i].head, item_run);
		if (i % 16 == 0)
			rcu_quiescent_state();
	}
	set_thread_call_rcu_data(NULL);
}

static void produce_from_many(struct call_rcu_data **workers)
{
	enum { THREADS = 4, EACH = 2000 };
	struct producer producers[THREADS];
	long ran = 0;

	for (int i = 0; i < THREADS; i++) {
		producers[i].items = calloc(EACH, sizeof(struct item));
		CHECK(producers[i].items != NULL);
		producers[i].count = EACH;
		producers[i].ran = &ran;
		producers[i].worker = workers ? workers[i % 2] : NULL;
		producers[i].thread = reader_start(produce, &producers[i]);
	}
	for (int i = 0; i < THREADS; i++)
		thread_end(producers[i].thread);
	/* Everybody's callbacks, not the caller's alone. */
	rcu_barrier();
	CHECK_EQUAL(count_of(&ran), THREADS * EACH);
	for (int i = 0; i < THREADS; i++)
		free(producers[i].items);
}

CASE(many_threads_one_worker)
{
	produce_from_many(NULL);
}

/* multipathd 0.9.4 asks for its worker's thread, frees the worker, and joins the thread then. */
CASE(many_threads_two_workers)
{
	struct call_rcu_data *workers[2] = { create_call_rcu_data(0, -1), create_call_rcu_data(0, -1) };
	pthread_t threads[2];

	CHECK(workers[0] != NULL && workers[1] != NULL && workers[0] != workers[1]);
	for (int i = 0; i < 2; i++)
		threads[i] = get_call_rcu_thread(workers[i]);
	produce_from_many(workers);
	for (int i = 0; i < 2; i++) {
		call_rcu_data_free(workers[i]);
		/* The worker ends by itself, and is its user's to join; liburcu joins it itself since 0.14. */
		if (!is_liburcu("0.15"))
			thread_end(threads[i]);
	}
}

CASE(barrier_with_nothing_to_do)
{
	for (int i = 0; i < 3; i++)
		rcu_barrier();
	rcu_register_thread();
	rcu_barrier();
	CHECK_EQUAL(!!rcu_read_ongoing(), IS_QSBR);
	rcu_unregister_thread();
}

static void *barrier_run(void *argument)
{
	(void)argument;
	rcu_barrier();
	return NULL;
}

READER_CASE(barriers_at_once)
{
	long ran = 0;
	struct item items[50];
	pthread_t threads[3];

	for (int i = 0; i < 50; i++) {
		items[i] = (struct item){ .ran = &ran };
		call_rcu(&items[i].head, item_run);
	}
	idle_begin();
	for (int i = 0; i < 3; i++)
		threads[i] = thread_start(barrier_run, NULL);
	thread_end(threads[0]);
	CHECK_EQUAL(count_of(&ran), 50);
	thread_end(threads[1]);
	thread_end(threads[2]);
	idle_end();
}

/* By itself, without a barrier. */
static void ran_on(struct call_rcu_data *worker)
{
	long ran = 0;
	int done = 0;
	pthread_t on;
	struct item item = { .ran = &ran, .on = &on, .done = &done };

	call_rcu(&item.head, item_run);
	waits_for_the_callback(&done);
	CHECK_EQUAL(ran, 1);
	CHECK(!pthread_equal(on, pthread_self()));
	CHECK(pthread_equal(on, get_call_rcu_thread(worker)));
}

READER_CASE(who_has_which_worker)
{
	struct call_rcu_data *standard, *own;

	standard = get_default_call_rcu_data();
	CHECK(standard != NULL);
	CHECK(get_default_call_rcu_data() == standard);
	CHECK(get_thread_call_rcu_data() == NULL);
	CHECK(get_call_rcu_data() == standard);
	own = create_call_rcu_data(0, -1);
	CHECK(own != NULL && own != standard);
	set_thread_call_rcu_data(own);
	CHECK(get_thread_call_rcu_data() == own);
	CHECK(get_call_rcu_data() == own);
	CHECK(get_default_call_rcu_data() == standard);
	ran_on(own);
	set_thread_call_rcu_data(NULL);
	CHECK(get_thread_call_rcu_data() == NULL);
	CHECK(get_call_rcu_data() == standard);
	ran_on(standard);
	idle_begin();
	call_rcu_data_free(own);
	idle_end();
}

READER_CASE(a_real_time_worker)
{
	struct call_rcu_data *own = create_call_rcu_data(URCU_CALL_RCU_RT, -1);

	CHECK(own != NULL);
	set_thread_call_rcu_data(own);
	ran_on(own);
	ran_on(own);
	idle_begin();
	rcu_barrier();
	idle_end();
	set_thread_call_rcu_data(NULL);
	idle_begin();
	call_rcu_data_free(own);
	idle_end();
}

static int last_cpu(void)
{
	cpu_set_t set;
	int last = 0;

	CHECK_EQUAL(sched_getaffinity(0, sizeof(set), &set), 0);
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &set))
			last = cpu;
	return last;
}

struct slow {
	struct rcu_head head;
	int begun, leave, ended;
};

static void slow_run(struct rcu_head *head)
{
	struct slow *slow = caa_container_of(head, struct slow, head);

	flag_set(&slow->begun);
	flag_await(&slow->leave);
	flag_set(&slow->ended);
}

struct freeing {
	struct call_rcu_data *worker;
	struct slow *slow;
	pid_t tid;
	int done;
};

static void *frees(void *argument)
{
	struct freeing *freeing = argument;

	__atomic_store_n(&freeing->tid, thread_id(), __ATOMIC_SEQ_CST);
	call_rcu_data_free(freeing->worker);
	CHECK(flag_is_set(&freeing->slow->ended));
	flag_set(&freeing->done);
	return NULL;
}

/* Once a worker has been freed it runs nothing any more: what it was at has ended. */
READER_CASE(freeing_waits_for_the_worker)
{
	struct slow slow = { .begun = 0 };
	struct freeing freeing = { .worker = create_call_rcu_data(0, -1), .slow = &slow };
	pthread_t thread;

	set_thread_call_rcu_data(freeing.worker);
	call_rcu(&slow.head, slow_run);
	set_thread_call_rcu_data(NULL);
	idle_begin();
	flag_await(&slow.begun);
	thread = thread_start(frees, &freeing);
	await_asleep(&freeing.tid, &freeing.done);
	CHECK(!flag_is_set(&freeing.done));
	flag_set(&slow.leave);
	thread_end(thread);
	idle_end();
}

struct suicidal {
	struct rcu_head head;
	struct call_rcu_data *worker;
	int ran;
};

static void frees_its_own_worker(struct rcu_head *head)
{
	struct suicidal *suicidal = caa_container_of(head, struct suicidal, head);

	call_rcu_data_free(suicidal->worker);
	flag_set(&suicidal->ran);
}

/* By its own callback: liburcu would wait for itself. */
READER_CASE(freed_by_its_own_callback)
{
	struct suicidal suicidal = { .worker = create_call_rcu_data(0, -1) };
	pthread_t thread = get_call_rcu_thread(suicidal.worker);

	set_thread_call_rcu_data(suicidal.worker);
	call_rcu(&suicidal.head, frees_its_own_worker);
	set_thread_call_rcu_data(NULL);
	idle_begin();
	flag_await(&suicidal.ran);
	thread_end(thread);
	idle_end();
}

READER_CASE(freeing_nothing)
{
	long ran = 0;
	struct item item = { .ran = &ran };

	call_rcu_data_free(NULL);
	/* The default worker is not to be freed: nothing happens. */
	call_rcu_data_free(get_default_call_rcu_data());
	call_rcu(&item.head, item_run);
	rcu_barrier();
	CHECK_EQUAL(count_of(&ran), 1);
}

READER_CASE(a_cpus_worker)
{
	int cpu = last_cpu();
	struct call_rcu_data *own = create_call_rcu_data(0, -1), *other = create_call_rcu_data(0, -1);

	pin_to_cpu(cpu);
	CHECK(get_cpu_call_rcu_data(cpu) == NULL);
	CHECK(get_cpu_call_rcu_data(-1) == NULL);
	CHECK(get_cpu_call_rcu_data(1 << 20) == NULL);
	CHECK_EQUAL(set_cpu_call_rcu_data(cpu, own), 0);
	CHECK(get_cpu_call_rcu_data(cpu) == own);
	CHECK(get_call_rcu_data() == own);
	ran_on(own);
	/* A thread's own comes before its CPU's. */
	set_thread_call_rcu_data(other);
	CHECK(get_call_rcu_data() == other);
	set_thread_call_rcu_data(NULL);
	CHECK(get_call_rcu_data() == own);
	errno = 0;
	CHECK_EQUAL(set_cpu_call_rcu_data(cpu, own), -EEXIST);
	CHECK_EQUAL(set_cpu_call_rcu_data(cpu, other), -EEXIST);
	CHECK_EQUAL(errno, EEXIST);
	CHECK(get_cpu_call_rcu_data(cpu) == own);
	errno = 0;
	CHECK_EQUAL(set_cpu_call_rcu_data(-1, other), -EINVAL);
	CHECK_EQUAL(errno, EINVAL);
	errno = 0;
	CHECK_EQUAL(set_cpu_call_rcu_data(1 << 20, other), -EINVAL);
	CHECK_EQUAL(errno, EINVAL);
	CHECK_EQUAL(set_cpu_call_rcu_data(cpu, NULL), 0);
	CHECK(get_cpu_call_rcu_data(cpu) == NULL);
	CHECK_EQUAL(set_cpu_call_rcu_data(cpu, NULL), 0);
	CHECK(get_call_rcu_data() == get_default_call_rcu_data());
	idle_begin();
	synchronize_rcu();
	call_rcu_data_free(own);
	call_rcu_data_free(other);
	idle_end();
}

READER_CASE(a_worker_for_every_cpu)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);

	for (int round = 0; round < 2; round++) {
		CHECK_EQUAL(create_all_cpu_call_rcu_data(0), 0);
		/* Those that are there stay. */
		struct call_rcu_data *first = get_cpu_call_rcu_data(0);
		CHECK(first != NULL);
		CHECK_EQUAL(create_all_cpu_call_rcu_data(0), 0);
		CHECK(get_cpu_call_rcu_data(0) == first);
		for (long cpu = 1; cpu < cpus; cpu++) {
			CHECK(get_cpu_call_rcu_data((int)cpu) != NULL);
			CHECK(get_cpu_call_rcu_data((int)cpu) != first);
		}
		pin_to_cpu(last_cpu());
		ran_on(get_cpu_call_rcu_data(sched_getcpu()));
		idle_begin();
		free_all_cpu_call_rcu_data();
		idle_end();
		for (long cpu = 0; cpu < cpus; cpu++)
			CHECK(get_cpu_call_rcu_data((int)cpu) == NULL);
		CHECK(get_call_rcu_data() == get_default_call_rcu_data());
	}
}

static void ends_with_a_worker_set(void *argument)
{
	struct producer *producer = argument;

	set_thread_call_rcu_data(producer->worker);
	producer->items[0] = (struct item){ .ran = producer->ran };
	call_rcu(&producer->items[0].head, item_run);
}

CASE(a_threads_worker_outlives_it)
{
	long ran = 0;
	struct item item;
	struct producer producer = { .items = &item, .ran = &ran, .worker = create_call_rcu_data(0, -1) };

	thread_end(reader_start(ends_with_a_worker_set, &producer));
	rcu_barrier();
	CHECK_EQUAL(count_of(&ran), 1);
	call_rcu_data_free(producer.worker);
}
