/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Tries to catch the library under a C program in a mistake: readers that come and go, updaters that defer in every
 * way there is, a hash table that grows and shrinks, workers that come and go, children made by fork. Compiled once for
 * each flavour, readers inlined.
 *
 * `torture SECONDS [SEED]`: prints what it has done; a mistake ends it with a message and SIGABRT. Objects are never
 * given back to the allocator, but used again, so that a reader that reads one too late finds that it is another one.
 */
#define _GNU_SOURCE
#define _LGPL_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../tests/abi/flavor.h"
#include <urcu/rculfhash.h>

#define READERS		3
#define UPDATERS	2
#define SLOTS		64
#define KEYS		512

static void mistake(const char *what)
{
	fprintf(stderr, "torture: %s\n", what);
	abort();
}

static bool stop;
static unsigned long reads, updates, grace_periods, barriers, forks;

static void add_to(unsigned long *count, unsigned long by)
{
	__atomic_fetch_add(count, by, __ATOMIC_RELAXED);
}

static bool is_over(void)
{
	return __atomic_load_n(&stop, __ATOMIC_RELAXED);
}

/* A generator for each thread. */
static unsigned long draw(unsigned long *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	/* The low bits are not random enough by themselves. */
	return *state * 0x2545f4914f6cdd1dUL >> 32;
}

/* ---- objects ------------------------------------------------------------------------------------------- */

#define ALIVE	0x5eed5eedUL
#define DEAD	0xdead6b6bUL

struct object {
	unsigned long state;
	unsigned long generation;
	struct rcu_head head;
	struct cds_lfht_node node;
	unsigned long key;
	struct object *next;
};

static pthread_mutex_t pool_lock = PTHREAD_MUTEX_INITIALIZER;
static struct object *pool;
static unsigned long living;

static struct object *make(void)
{
	struct object *object;

	pthread_mutex_lock(&pool_lock);
	object = pool;
	if (object)
		pool = object->next;
	living++;
	pthread_mutex_unlock(&pool_lock);
	if (!object) {
		object = calloc(1, sizeof *object);
		if (!object)
			mistake("out of memory: what waits is not bounded");
	} else if (object->state != DEAD) {
		mistake("an object was reclaimed twice");
	}
	__atomic_store_n(&object->generation, object->generation + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&object->state, ALIVE, __ATOMIC_RELAXED);
	return object;
}

static void reclaim(void *pointer)
{
	struct object *object = pointer;

	if (__atomic_exchange_n(&object->state, DEAD, __ATOMIC_RELAXED) != ALIVE)
		mistake("an object was reclaimed twice");
	pthread_mutex_lock(&pool_lock);
	object->next = pool;
	pool = object;
	living--;
	pthread_mutex_unlock(&pool_lock);
}

static void reclaim_head(struct rcu_head *head)
{
	/* A callback may read. */
	rcu_read_lock();
	rcu_read_unlock();
	reclaim(caa_container_of(head, struct object, head));
}

/* Looks at an object for as long as a section lasts. */
static void look(struct object *object, unsigned long *state)
{
	unsigned long generation = __atomic_load_n(&object->generation, __ATOMIC_RELAXED);
	int looks = draw(state) % 64;

	for (int each = 0; each < looks; each++) {
		if (__atomic_load_n(&object->state, __ATOMIC_RELAXED) != ALIVE ||
		    __atomic_load_n(&object->generation, __ATOMIC_RELAXED) != generation)
			mistake("an object was reclaimed while it was read");
		if (each == 32)
			sched_yield();
	}
}

/* ---- readers --------------------------------------------------------------------------------------------- */

static struct object *slots[SLOTS];
static struct cds_lfht *table;

static int is_key(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct object, node)->key == *(const unsigned long *)key;
}

static unsigned long hash_of(unsigned long key)
{
	return key * 0x9e3779b97f4a7c15UL;
}

static void look_up(unsigned long *state)
{
	unsigned long key = draw(state) % KEYS;
	struct cds_lfht_iter iterator;
	struct cds_lfht_node *node;

	cds_lfht_lookup(table, hash_of(key), is_key, &key, &iterator);
	node = cds_lfht_iter_get_node(&iterator);
	if (!node)
		return;
	if (caa_container_of(node, struct object, node)->key != key)
		mistake("a table has answered with another key");
	look(caa_container_of(node, struct object, node), state);
}

static void *read_all_the_time(void *argument)
{
	unsigned long state = (unsigned long)argument;

	/* A registration does not last for ever. */
	while (!is_over()) {
		rcu_register_thread();
		for (int each = 0; each < 500 && !is_over(); each++) {
			rcu_read_lock();
			if (draw(&state) % 4 == 0) {
				rcu_read_lock();
				look_up(&state);
				rcu_read_unlock();
			} else {
				look(rcu_dereference(slots[draw(&state) % SLOTS]), &state);
			}
			rcu_read_unlock();
			rcu_quiescent_state();
			if (draw(&state) % 256 == 0) {
				rcu_thread_offline();
				sched_yield();
				rcu_thread_online();
			}
		}
		add_to(&reads, 500);
		rcu_unregister_thread();
	}
	return NULL;
}

/* ---- updaters -------------------------------------------------------------------------------------------- */

static void retire(struct object *object, unsigned long *state)
{
	switch (draw(state) % 16) {
	case 0:
		synchronize_rcu();
		add_to(&grace_periods, 1);
		reclaim(object);
		break;
	case 1: case 2: case 3: case 4:
		defer_rcu(reclaim, object);
		break;
	default:
		call_rcu(&object->head, reclaim_head);
	}
	add_to(&updates, 1);
}

static void replace(unsigned long *state)
{
	struct object *old = rcu_xchg_pointer(&slots[draw(state) % SLOTS], make());

	retire(old, state);
}

static void change_table(unsigned long *state)
{
	struct object *object = make();
	struct cds_lfht_node *was;

	object->key = draw(state) % KEYS;
	cds_lfht_node_init(&object->node);
	rcu_read_lock();
	was = cds_lfht_add_replace(table, hash_of(object->key), is_key, &object->key, &object->node);
	if (draw(state) % 3 == 0 && !cds_lfht_del(table, &object->node)) {
		rcu_read_unlock();
		retire(object, state);
	} else {
		rcu_read_unlock();
	}
	if (was)
		retire(caa_container_of(was, struct object, node), state);
}

static void *update_all_the_time(void *argument)
{
	unsigned long state = (unsigned long)argument;
	struct call_rcu_data *worker = NULL;

	rcu_register_thread();
	rcu_defer_register_thread();
	while (!is_over()) {
		if (draw(&state) % 2)
			replace(&state);
		else
			change_table(&state);
		rcu_quiescent_state();
		if (draw(&state) % 2048)
			continue;
		/* A worker of one's own, for a while. */
		if (worker) {
			set_thread_call_rcu_data(NULL);
			call_rcu_data_free(worker);
			worker = NULL;
		} else {
			worker = create_call_rcu_data(0, -1);
			set_thread_call_rcu_data(worker);
		}
		if (draw(&state) % 2) {
			rcu_barrier();
			add_to(&barriers, 1);
		} else {
			rcu_defer_barrier_thread();
		}
	}
	if (worker) {
		set_thread_call_rcu_data(NULL);
		call_rcu_data_free(worker);
	}
	rcu_defer_barrier_thread();
	rcu_defer_unregister_thread();
	rcu_unregister_thread();
	return NULL;
}

/* ---- children -------------------------------------------------------------------------------------------- */

static void in_child(void)
{
	struct object *object;

	alarm(20);
	call_rcu_after_fork_child();
	/* The lock is free: it was held by the thread that forked. */
	pthread_mutex_unlock(&pool_lock);
	object = make();
	call_rcu(&object->head, reclaim_head);
	synchronize_rcu();
	rcu_barrier();
	if (object->state != DEAD)
		mistake("a child's callback has not run");
	_exit(0);
}

static void fork_one(void)
{
	int status = -1;
	pid_t child;

	call_rcu_before_fork();
	pthread_mutex_lock(&pool_lock);
	child = fork();
	if (child < 0)
		mistake("no more processes");
	if (!child)
		in_child();
	pthread_mutex_unlock(&pool_lock);
	call_rcu_after_fork_parent();
	rcu_thread_offline();
	if (waitpid(child, &status, 0) != child || status)
		mistake("a child failed");
	rcu_thread_online();
	add_to(&forks, 1);
}

/* ------------------------------------------------------------------------------------------------------------ */

static void empty_table(void)
{
	struct cds_lfht_iter iterator;
	struct cds_lfht_node *node;

	rcu_read_lock();
	cds_lfht_for_each(table, &iterator, node) {
		if (!cds_lfht_del(table, node))
			call_rcu(&caa_container_of(node, struct object, node)->head, reclaim_head);
	}
	rcu_read_unlock();
	rcu_thread_offline();
	if (cds_lfht_destroy(table, NULL))
		mistake("a table that was emptied is not empty");
	rcu_thread_online();
}

int main(int count, char **words)
{
	long seconds = count > 1 ? atol(words[1]) : 0;
	unsigned long seed = count > 2 ? strtoul(words[2], NULL, 0) : 1;
	pthread_t threads[READERS + UPDATERS];
	time_t end = time(NULL) + seconds;

	if (seconds <= 0) {
		fprintf(stderr, "usage: torture SECONDS [SEED]\n");
		return 2;
	}
	rcu_register_thread();
	for (int each = 0; each < SLOTS; each++)
		slots[each] = make();
	table = cds_lfht_new_flavor(1, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, &rcu_flavor, NULL);
	if (!table)
		mistake("no table");
	for (long each = 0; each < READERS + UPDATERS; each++) {
		void *argument = (void *)((seed + each) * 0x9e3779b97f4a7c15UL | 1);

		if (pthread_create(&threads[each], NULL, each < READERS ? read_all_the_time : update_all_the_time,
				   argument))
			mistake("no more threads");
	}
	rcu_thread_offline();
	while (time(NULL) < end) {
		usleep(200000);
		rcu_thread_online();
		fork_one();
		rcu_thread_offline();
	}
	__atomic_store_n(&stop, true, __ATOMIC_RELAXED);
	for (int each = 0; each < READERS + UPDATERS; each++)
		pthread_join(threads[each], NULL);
	rcu_thread_online();
	for (int each = 0; each < SLOTS; each++)
		call_rcu(&slots[each]->head, reclaim_head);
	empty_table();
	rcu_barrier();
	if (living)
		mistake("objects were lost");
	printf("%lu reads, %lu updates, %lu grace periods, %lu barriers, %lu children: no mistake\n", reads, updates,
	       grace_periods, barriers, forks);
	rcu_unregister_thread();
	return 0;
}
