/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the programs of the resizable hash table put into it, and how they make one and end it. */
#ifndef LFHT_H
#define LFHT_H

#include "flavor.h"
#include <urcu/rculfhash.h>

struct item {
	struct cds_lfht_node node;
	long key;
	long value;
	struct rcu_head head;
};

static inline struct item *item_of(struct cds_lfht_node *node)
{
	return caa_container_of(node, struct item, node);
}

static inline int same_key(struct cds_lfht_node *node, const void *key)
{
	return item_of(node)->key == *(const long *)key;
}

/* Spreads keys over all bits, so that buckets fill evenly. */
static inline unsigned long hash_of(long key)
{
	unsigned long hash = (unsigned long)key * 0x9e3779b97f4a7c15UL;

	return hash ^ (hash >> 29);
}

static inline void item_init(struct item *item, long key, long value)
{
	cds_lfht_node_init(&item->node);
	item->key = key;
	item->value = value;
}

static inline struct item *find(struct cds_lfht *table, long key)
{
	struct cds_lfht_iter iter;

	cds_lfht_lookup(table, hash_of(key), same_key, &key, &iter);
	return cds_lfht_iter_get_node(&iter) ? item_of(cds_lfht_iter_get_node(&iter)) : NULL;
}

static inline long nodes_in(struct cds_lfht *table)
{
	long before, after;
	unsigned long count;

	cds_lfht_count_nodes(table, &before, &count, &after);
	return (long)count;
}

static inline long walked(struct cds_lfht *table)
{
	struct cds_lfht_iter iter;
	struct item *item;
	long count = 0;

	cds_lfht_for_each_entry(table, &iter, item, node)
		count++;
	return count;
}

static inline struct cds_lfht *table_of(int flags)
{
	struct cds_lfht *table = cds_lfht_new(4, 4, 0, flags, NULL);

	CHECK(table != NULL);
	return table;
}

/* Offline: in liburcu an online QSBR thread waits for the table's worker, which waits for the thread. */
static inline void table_end(struct cds_lfht *table)
{
	int online = !!rcu_read_ongoing();

	if (online)
		idle_begin();
	CHECK_EQUAL(cds_lfht_destroy(table, NULL), 0);
	if (online)
		idle_end();
}

#endif
