/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The resizable hash table under load: many threads read, replace, add and delete while it grows and shrinks, by itself
 * and by hand; and of those who want the same, one gets it.
 */
#include "lfht.h"

struct load {
	struct cds_lfht *table;
	int stop;
	long keys;
	long found, missed;
	long owned;		/* nodes now in the table, over all writers */
	int writer;
	struct load *shared;
};

static void item_free(struct rcu_head *head)
{
	struct item *item = caa_container_of(head, struct item, head);

	item->key = -1;
	free(item);
}

/* Keys below `keys` are always there, replaced all the time; those above come and go. */
static void reads_under_load(void *argument)
{
	struct load *load = argument;
	unsigned long random = 1;

	while (!flag_is_set(&load->stop)) {
		random = random * 6364136223846793005UL + 1442695040888963407UL;
		long key = (long)(random >> 33) % (2 * load->keys);

		section_begin();
		struct item *item = find(load->table, key);
		if (item) {
			CHECK_EQUAL(item->key, key);
			CHECK_EQUAL(item->value, key + 1);
			count_add(&load->found, 1);
		} else {
			CHECK(key >= load->keys);
			count_add(&load->missed, 1);
		}
		section_end();
	}
}

static struct item *item_new(long key)
{
	struct item *item = malloc(sizeof(*item));

	CHECK(item != NULL);
	item_init(item, key, key + 1);
	return item;
}

static void writes_under_load(void *argument)
{
	struct load *mine = argument, *load = mine->shared;
	unsigned long random = (unsigned long)mine->writer + 7;

	for (int i = 0; i < 10000; i++) {
		random = random * 6364136223846793005UL + 1442695040888963407UL;
		long key = (long)(random >> 33) % (2 * load->keys);
		struct item *item = item_new(key);
		struct cds_lfht_node *old;

		rcu_read_lock();
		if (key < load->keys) {
			old = cds_lfht_add_replace(load->table, hash_of(key), same_key, &key, &item->node);
			CHECK(old != NULL);
			call_rcu(&item_of(old)->head, item_free);
		} else if (random & (1UL << 20)) {
			old = cds_lfht_add_unique(load->table, hash_of(key), same_key, &key, &item->node);
			if (old == &item->node)
				count_add(&load->owned, 1);
			else
				free(item);
		} else {
			struct item *there = find(load->table, key);

			free(item);
			if (there && cds_lfht_del(load->table, &there->node) == 0) {
				count_add(&load->owned, -1);
				call_rcu(&there->head, item_free);
			}
		}
		rcu_read_unlock();
		rcu_quiescent_state();
	}
}

static void resizes_under_load(void *argument)
{
	struct load *load = argument;

	for (unsigned long i = 0; i < 12 || !flag_is_set(&load->stop); i++)
		cds_lfht_resize(load->table, 1UL << (i * 5 % 11));
}

static void under_load(int flags, int by_hand)
{
	enum { WRITERS = 2, READERS = 2, KEYS = 500 };
	struct load load = { .keys = KEYS };
	struct load writers[WRITERS];
	pthread_t writing[WRITERS], reading[READERS], resizing = 0;
	struct cds_lfht_iter iter;
	struct item *item;

	load.table = cds_lfht_new(1, 1, 0, flags, NULL);
	CHECK(load.table != NULL);
	rcu_register_thread();
	rcu_read_lock();
	for (long key = 0; key < KEYS; key++)
		cds_lfht_add(load.table, hash_of(key), &item_new(key)->node);
	rcu_read_unlock();
	load.owned = KEYS;
	idle_begin();
	for (int i = 0; i < READERS; i++)
		reading[i] = reader_start(reads_under_load, &load);
	if (by_hand)
		resizing = reader_start(resizes_under_load, &load);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct load){ .writer = i, .shared = &load };
		writing[i] = reader_start(writes_under_load, &writers[i]);
	}
	for (int i = 0; i < WRITERS; i++)
		thread_end(writing[i]);
	WAIT_UNTIL(count_of(&load.found) > 0);
	flag_set(&load.stop);
	for (int i = 0; i < READERS; i++)
		thread_end(reading[i]);
	if (by_hand)
		thread_end(resizing);
	idle_end();
	rcu_read_lock();
	CHECK_EQUAL(nodes_in(load.table), load.owned);
	cds_lfht_for_each_entry(load.table, &iter, item, node) {
		CHECK_EQUAL(item->value, item->key + 1);
		CHECK_EQUAL(cds_lfht_del(load.table, &item->node), 0);
		call_rcu(&item->head, item_free);
	}
	rcu_read_unlock();
	rcu_quiescent_state();
	table_end(load.table);
	rcu_unregister_thread();
	rcu_barrier();
}

CASE(load_while_it_grows)
{
	under_load(CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, 0);
}

CASE(load_while_resized_by_hand)
{
	under_load(0, 1);
}

static long wins;
static struct item contenders[4][200];
static struct cds_lfht *contended;

static void adds_unique(void *argument)
{
	int me = (int)(intptr_t)argument;

	for (long key = 0; key < 200; key++) {
		item_init(&contenders[me][key], key, me);
		rcu_read_lock();
		if (cds_lfht_add_unique(contended, hash_of(key), same_key, &key, &contenders[me][key].node) ==
		    &contenders[me][key].node)
			count_add(&wins, 1);
		rcu_read_unlock();
		rcu_quiescent_state();
	}
}

static void deletes_all(void *argument)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	(void)argument;
	rcu_read_lock();
	cds_lfht_for_each(contended, &iter, node)
		if (cds_lfht_del(contended, node) == 0)
			count_add(&wins, 1);
	rcu_read_unlock();
}

/* Of many who add one key, or delete one node, one succeeds. */
CASE(one_winner)
{
	pthread_t threads[4];

	wins = 0;
	contended = table_of(CDS_LFHT_AUTO_RESIZE);
	for (intptr_t i = 0; i < 4; i++)
		threads[i] = reader_start(adds_unique, (void *)i);
	for (int i = 0; i < 4; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(count_of(&wins), 200);
	wins = 0;
	for (int i = 0; i < 4; i++)
		threads[i] = reader_start(deletes_all, NULL);
	for (int i = 0; i < 4; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(count_of(&wins), 200);
	table_end(contended);
}
