/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A flavour that is linked out of its archive: readers and an updater, callbacks, deferred calls, a
 * hash table; and a constructor of the program's own that reads.
 */
#include "../../examples/check.h"
#include "../abi/flavor.h"

#include <pthread.h>
#include <urcu/rculfhash.h>

enum {
	ROUNDS = 2000,
	READERS = 2,
	ALIVE = 0x600d,
	DEAD = 0xdead,
};

struct object {
	int state;
	struct rcu_head head;
};

struct entry {
	unsigned long key;
	struct cds_lfht_node node;
};

static struct object *published;
static int is_over;
static unsigned long called, deferred;

/* A constructor may come before any of the library's. */
static void __attribute__((constructor)) read_early(void)
{
	rcu_register_thread();
	rcu_read_lock();
	CHECK(!rcu_dereference(published));
	rcu_read_unlock();
	rcu_unregister_thread();
}

static void *read_on(void *unused)
{
	(void)unused;
	rcu_register_thread();
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		struct object *object;

		rcu_read_lock();
		object = rcu_dereference(published);
		CHECK(!object || __atomic_load_n(&object->state, __ATOMIC_RELAXED) == ALIVE);
		rcu_read_unlock();
#if defined(FLAVOR_QSBR)
		rcu_quiescent_state();
#endif
	}
	rcu_unregister_thread();
	return NULL;
}

static void end(struct object *object)
{
	__atomic_store_n(&object->state, DEAD, __ATOMIC_RELAXED);
	free(object);
}

static void end_by_callback(struct rcu_head *head)
{
	end(caa_container_of(head, struct object, head));
	__atomic_add_fetch(&called, 1, __ATOMIC_RELAXED);
}

static void end_deferred(void *object)
{
	end(object);
	__atomic_add_fetch(&deferred, 1, __ATOMIC_RELAXED);
}

static struct object *publish(void)
{
	struct object *object = calloc(1, sizeof(*object));

	CHECK(object);
	object->state = ALIVE;
	return rcu_xchg_pointer(&published, object);
}

static void update(void)
{
	CHECK(!publish());
	for (int round = 0; round < ROUNDS; round++) {
		struct object *old = publish();

		synchronize_rcu();
		end(old);
		call_rcu(&publish()->head, end_by_callback);
		defer_rcu(end_deferred, publish());
	}
}

static int is_key(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct entry, node)->key == *(const unsigned long *)key;
}

static void use_a_table(void)
{
	static struct entry entries[100];
	struct cds_lfht *table = cds_lfht_new(1, 1, 0, CDS_LFHT_AUTO_RESIZE, NULL);
	unsigned long count, key = 7;
	struct cds_lfht_iter iter;
	long before, after;

	CHECK(table);
	rcu_read_lock();
	for (unsigned long i = 0; i < 100; i++) {
		entries[i].key = i;
		cds_lfht_node_init(&entries[i].node);
		cds_lfht_add(table, i * 0x9e3779b97f4a7c15UL, &entries[i].node);
	}
	cds_lfht_count_nodes(table, &before, &count, &after);
	CHECK(count == 100);
	cds_lfht_lookup(table, key * 0x9e3779b97f4a7c15UL, is_key, &key, &iter);
	CHECK(cds_lfht_iter_get_node(&iter) == &entries[7].node);
	for (unsigned long i = 0; i < 100; i++)
		CHECK(!cds_lfht_del(table, &entries[i].node));
	rcu_read_unlock();
	CHECK(!cds_lfht_destroy(table, NULL));
}

int main(void)
{
	pthread_t readers[READERS];

	rcu_register_thread();
	CHECK(!rcu_defer_register_thread());
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&readers[i], NULL, read_on, NULL));
	update();
	use_a_table();
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
#if defined(FLAVOR_QSBR)
	rcu_thread_offline();
#endif
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_join(readers[i], NULL));
#if defined(FLAVOR_QSBR)
	rcu_thread_online();
#endif
	rcu_barrier();
	rcu_defer_barrier();
	CHECK(called == ROUNDS && deferred == ROUNDS);
	rcu_defer_unregister_thread();
	rcu_unregister_thread();
	puts("ok");
	return 0;
}
