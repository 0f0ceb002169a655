/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The hash table: look-ups in sections, next to one updater that adds, replaces and deletes. It
 * grows by itself. Removed entries are freed by call_rcu.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <urcu/urcu-memb.h>
#include <urcu/rculfhash.h>

#include "check.h"

enum {
	READERS = 2,
	KEYS = 10000,
	ROUNDS = 3,
};

struct entry {
	uint64_t key, value;
	struct cds_lfht_node node;
	struct rcu_head head;
};

static struct cds_lfht *table;
static atomic_bool is_over;
static atomic_ulong freed;

static unsigned long hash(uint64_t key)
{
	key *= UINT64_C(0x9e3779b97f4a7c15);
	return key ^ key >> 32;
}

static int has_key(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct entry, node)->key == *(const uint64_t *)key;
}

/* In a section, in which the entry may be used. */
static struct entry *look_up(uint64_t key)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	cds_lfht_lookup(table, hash(key), has_key, &key, &iter);
	node = cds_lfht_iter_get_node(&iter);
	return node ? caa_container_of(node, struct entry, node) : NULL;
}

static void free_entry(struct rcu_head *head)
{
	struct entry *entry = caa_container_of(head, struct entry, head);

	entry->value = 0;
	free(entry);
	atomic_fetch_add(&freed, 1);
}

static void *read_on(void *unused)
{
	uint64_t key = 0;

	(void)unused;
	urcu_memb_register_thread();
	while (!atomic_load(&is_over)) {
		struct entry *found;

		key = (key + 7919) % KEYS;
		urcu_memb_read_lock();
		found = look_up(key);
		CHECK(!found || (found->key == key && found->value / ROUNDS == key + 1));
		urcu_memb_read_unlock();
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void set(uint64_t key, uint64_t round)
{
	struct entry *new = calloc(1, sizeof(*new));
	struct cds_lfht_node *old;

	CHECK(new);
	new->key = key;
	new->value = (key + 1) * ROUNDS + round;
	cds_lfht_node_init(&new->node);
	urcu_memb_read_lock();
	old = cds_lfht_add_replace(table, hash(key), has_key, &key, &new->node);
	urcu_memb_read_unlock();
	if (old)
		urcu_memb_call_rcu(&caa_container_of(old, struct entry, node)->head, free_entry);
}

static void delete_all(void)
{
	struct cds_lfht_iter iter;
	struct entry *entry;
	unsigned long deleted = 0;

	urcu_memb_read_lock();
	cds_lfht_for_each_entry(table, &iter, entry, node) {
		CHECK(!cds_lfht_del(table, &entry->node));
		urcu_memb_call_rcu(&entry->head, free_entry);
		deleted++;
	}
	urcu_memb_read_unlock();
	CHECK(deleted == KEYS);
}

int main(void)
{
	pthread_t readers[READERS];

	urcu_memb_register_thread();
	table = cds_lfht_new_flavor(1, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING,
				    &urcu_memb_flavor, NULL);
	CHECK(table);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&readers[i], NULL, read_on, NULL));
	for (uint64_t round = 0; round < ROUNDS; round++)
		for (uint64_t key = 0; key < KEYS; key++)
			set(key, round);
	delete_all();
	atomic_store(&is_over, 1);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_join(readers[i], NULL));
	urcu_memb_barrier();
	CHECK(atomic_load(&freed) == (unsigned long)ROUNDS * KEYS);
	CHECK(!cds_lfht_destroy(table, NULL));
	urcu_memb_unregister_thread();
	puts("table: ok");
	return 0;
}
