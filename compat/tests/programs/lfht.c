/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The resizable hash table: every function with every answer, each memory back-end, each flag, then under load while
 * it grows and shrinks. Compiled for a flavour, since a table belongs to one.
 */
#include "flavor.h"
#include <urcu/rculfhash.h>

struct item {
	struct cds_lfht_node node;
	long key;
	long value;
	struct rcu_head head;
};

static struct item *item_of(struct cds_lfht_node *node)
{
	return caa_container_of(node, struct item, node);
}

static int same_key(struct cds_lfht_node *node, const void *key)
{
	return item_of(node)->key == *(const long *)key;
}

/* Spreads keys over all bits, so that buckets fill evenly. */
static unsigned long hash_of(long key)
{
	unsigned long hash = (unsigned long)key * 0x9e3779b97f4a7c15UL;

	return hash ^ (hash >> 29);
}

static void item_init(struct item *item, long key, long value)
{
	cds_lfht_node_init(&item->node);
	item->key = key;
	item->value = value;
}

static struct item *find(struct cds_lfht *table, long key)
{
	struct cds_lfht_iter iter;

	cds_lfht_lookup(table, hash_of(key), same_key, &key, &iter);
	return cds_lfht_iter_get_node(&iter) ? item_of(cds_lfht_iter_get_node(&iter)) : NULL;
}

static long nodes_in(struct cds_lfht *table)
{
	long before, after;
	unsigned long count;

	cds_lfht_count_nodes(table, &before, &count, &after);
	return (long)count;
}

static long walked(struct cds_lfht *table)
{
	struct cds_lfht_iter iter;
	struct item *item;
	long count = 0;

	cds_lfht_for_each_entry(table, &iter, item, node)
		count++;
	return count;
}

static struct cds_lfht *table_of(int flags)
{
	struct cds_lfht *table = cds_lfht_new(4, 4, 0, flags, NULL);

	CHECK(table != NULL);
	return table;
}

/* Offline: in liburcu an online QSBR thread waits for the table's worker, which waits for the thread. */
static void table_end(struct cds_lfht *table)
{
	int online = !!rcu_read_ongoing();

	if (online)
		idle_begin();
	CHECK_EQUAL(cds_lfht_destroy(table, NULL), 0);
	if (online)
		idle_end();
}

static void add_find_delete(void)
{
	struct cds_lfht *table = table_of(0);
	struct item items[100];
	struct cds_lfht_iter iter;

	rcu_register_thread();
	rcu_read_lock();
	CHECK(find(table, 1) == NULL);
	cds_lfht_first(table, &iter);
	CHECK(cds_lfht_iter_get_node(&iter) == NULL);
	for (long i = 0; i < 100; i++) {
		item_init(&items[i], i, i * i);
		cds_lfht_add(table, hash_of(i), &items[i].node);
		CHECK(!cds_lfht_is_node_deleted(&items[i].node));
	}
	CHECK_EQUAL(nodes_in(table), 100);
	CHECK_EQUAL(walked(table), 100);
	for (long i = 0; i < 100; i++)
		CHECK(find(table, i) == &items[i]);
	CHECK(find(table, 100) == NULL);
	CHECK(find(table, -1) == NULL);
	for (long i = 0; i < 100; i += 2) {
		CHECK_EQUAL(cds_lfht_del(table, &items[i].node), 0);
		CHECK(cds_lfht_is_node_deleted(&items[i].node));
		/* Once only. */
		CHECK_EQUAL(cds_lfht_del(table, &items[i].node), -ENOENT);
	}
	CHECK_EQUAL(cds_lfht_del(table, NULL), -ENOENT);
	for (long i = 0; i < 100; i++)
		CHECK(find(table, i) == (i % 2 ? &items[i] : NULL));
	CHECK_EQUAL(nodes_in(table), 50);
	rcu_read_unlock();
	/* Not empty: it stays. */
	CHECK_EQUAL(cds_lfht_destroy(table, NULL), -EPERM);
	rcu_read_lock();
	for (long i = 1; i < 100; i += 2) {
		CHECK(find(table, i) == &items[i]);
		CHECK_EQUAL(cds_lfht_del(table, &items[i].node), 0);
	}
	CHECK_EQUAL(nodes_in(table), 0);
	rcu_read_unlock();
	table_end(table);
	rcu_unregister_thread();
}

static void duplicates(void)
{
	struct cds_lfht *table = table_of(0);
	struct item items[30];
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	struct item *item;
	int count[3] = { 0, 0, 0 };

	rcu_register_thread();
	rcu_read_lock();
	for (long i = 0; i < 30; i++) {
		item_init(&items[i], i % 3, i);
		cds_lfht_add(table, hash_of(i % 3), &items[i].node);
	}
	for (long key = 0; key < 3; key++) {
		long sum = 0;

		cds_lfht_for_each_entry_duplicate(table, hash_of(key), same_key, &key, &iter, item, node) {
			CHECK_EQUAL(item->key, key);
			sum += item->value;
			count[key]++;
		}
		CHECK_EQUAL(count[key], 10);
		CHECK_EQUAL(sum, 10 * key + 3 * 45);
		cds_lfht_for_each_duplicate(table, hash_of(key), same_key, &key, &iter, node)
			count[key]--;
		CHECK_EQUAL(count[key], 0);
	}
	/* By hand, deleting on the way. */
	long key = 1;
	cds_lfht_lookup(table, hash_of(key), same_key, &key, &iter);
	while ((node = cds_lfht_iter_get_node(&iter)) != NULL) {
		CHECK_EQUAL(cds_lfht_del(table, node), 0);
		cds_lfht_next_duplicate(table, same_key, &key, &iter);
		count[1]++;
	}
	CHECK_EQUAL(count[1], 10);
	CHECK(find(table, 1) == NULL);
	/* One walk over all of them. */
	long walk = 0;
	cds_lfht_for_each(table, &iter, node) {
		CHECK(item_of(node)->key != 1);
		CHECK_EQUAL(cds_lfht_del(table, node), 0);
		walk++;
	}
	CHECK_EQUAL(walk, 20);
	rcu_read_unlock();
	table_end(table);
	rcu_unregister_thread();
}

static void unique(void)
{
	struct cds_lfht *table = table_of(0);
	struct item first, second, third, other;
	long key = 7;

	rcu_register_thread();
	item_init(&first, 7, 1);
	item_init(&second, 7, 2);
	item_init(&third, 7, 3);
	item_init(&other, 8, 4);
	rcu_read_lock();
	CHECK(cds_lfht_add_unique(table, hash_of(7), same_key, &key, &first.node) == &first.node);
	CHECK(cds_lfht_add_unique(table, hash_of(7), same_key, &key, &second.node) == &first.node);
	CHECK(find(table, 7) == &first);
	CHECK(cds_lfht_add_replace(table, hash_of(7), same_key, &key, &second.node) == &first.node);
	CHECK(find(table, 7) == &second);
	CHECK(cds_lfht_is_node_deleted(&first.node));
	CHECK(!cds_lfht_is_node_deleted(&second.node));
	CHECK_EQUAL(cds_lfht_del(table, &first.node), -ENOENT);
	key = 8;
	CHECK(cds_lfht_add_replace(table, hash_of(8), same_key, &key, &other.node) == NULL);
	CHECK_EQUAL(nodes_in(table), 2);

	struct cds_lfht_iter iter;
	key = 7;
	cds_lfht_lookup(table, hash_of(7), same_key, &key, &iter);
	CHECK(cds_lfht_iter_get_node(&iter) == &second.node);
	/* Another hash, or another key, is not a replacement. */
	CHECK_EQUAL(cds_lfht_replace(table, &iter, hash_of(8), same_key, &key, &third.node), -EINVAL);
	key = 8;
	CHECK_EQUAL(cds_lfht_replace(table, &iter, hash_of(7), same_key, &key, &third.node), -EINVAL);
	CHECK(find(table, 7) == &second);
	key = 7;
	CHECK_EQUAL(cds_lfht_replace(table, &iter, hash_of(7), same_key, &key, &third.node), 0);
	CHECK(find(table, 7) == &third);
	/* The iterator's node is gone now. */
	CHECK_EQUAL(cds_lfht_replace(table, &iter, hash_of(7), same_key, &key, &first.node), -ENOENT);
	long missing = 9;
	cds_lfht_lookup(table, hash_of(9), same_key, &missing, &iter);
	CHECK(cds_lfht_iter_get_node(&iter) == NULL);
	CHECK_EQUAL(cds_lfht_replace(table, &iter, hash_of(9), same_key, &missing, &first.node), -ENOENT);
	CHECK_EQUAL(cds_lfht_del(table, &third.node), 0);
	CHECK_EQUAL(cds_lfht_del(table, &other.node), 0);
	rcu_read_unlock();
	table_end(table);
	rcu_unregister_thread();
}

static void fill(struct cds_lfht *table, struct item *items, long count)
{
	for (long i = 0; i < count; i++) {
		rcu_read_lock();
		item_init(&items[i], i, i);
		cds_lfht_add(table, hash_of(i), &items[i].node);
		rcu_read_unlock();
	}
	rcu_quiescent_state();
}

static void check_all(struct cds_lfht *table, struct item *items, long count)
{
	rcu_read_lock();
	for (long i = 0; i < count; i++)
		CHECK(find(table, i) == &items[i]);
	CHECK_EQUAL(walked(table), count);
	rcu_read_unlock();
	rcu_quiescent_state();
}

static void empty(struct cds_lfht *table, struct item *items, long count)
{
	for (long i = 0; i < count; i++) {
		rcu_read_lock();
		CHECK_EQUAL(cds_lfht_del(table, &items[i].node), 0);
		rcu_read_unlock();
	}
	rcu_quiescent_state();
}

static void resized_by_hand(void)
{
	enum { COUNT = 1000 };
	static struct item items[COUNT];
	static const unsigned long sizes[] = { 8, 1024, 256, 4096, 1, 64, 65536, 2, 1 };
	struct cds_lfht *table = cds_lfht_new(1, 1, 0, 0, NULL);

	CHECK(table != NULL);
	rcu_register_thread();
	fill(table, items, COUNT);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cds_lfht_resize(table, sizes[i]);
		check_all(table, items, COUNT);
	}
	empty(table, items, COUNT);
	table_end(table);
	rcu_unregister_thread();
}

static void with_back_end(const struct cds_lfht_mm_type *back_end, unsigned long max)
{
	enum { COUNT = 3000 };
	static struct item items[COUNT];
	/*
	 * In liburcu a QSBR table's own worker is online while it waits for the mutex of whoever resizes by hand, who
	 * waits for the worker.
	 */
	int flags = IS_QSBR ? CDS_LFHT_ACCOUNTING : CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING;
	struct cds_lfht *table = _cds_lfht_new(16, 4, max, flags, back_end, &rcu_flavor, NULL);

	CHECK(table != NULL);
	rcu_register_thread();
	fill(table, items, COUNT);
	check_all(table, items, COUNT);
	cds_lfht_resize(table, 1024);
	check_all(table, items, COUNT);
	cds_lfht_resize(table, 8);
	check_all(table, items, COUNT);
	empty(table, items, COUNT);
	table_end(table);
	rcu_unregister_thread();
}

static void back_end_order(void)
{
	with_back_end(&cds_lfht_mm_order, 0);
	with_back_end(&cds_lfht_mm_order, 4096);
}

static void back_end_chunk(void)
{
	with_back_end(&cds_lfht_mm_chunk, 1 << 16);
}

static void back_end_mmap(void)
{
	with_back_end(&cds_lfht_mm_mmap, 1 << 16);
}

static void back_end_chosen(void)
{
	with_back_end(NULL, 0);
	with_back_end(NULL, 1 << 12);
}

/* Where a back-end keeps its buckets: found by the function in its structure, whoever calls it. */
static void buckets_where_they_belong(void)
{
	static const struct cds_lfht_mm_type *const back_ends[] = {
		&cds_lfht_mm_order, &cds_lfht_mm_chunk, &cds_lfht_mm_mmap,
	};

	for (int i = 0; i < 3; i++) {
		struct cds_lfht *table = _cds_lfht_new(16, 16, 1 << 10, 0, back_ends[i], &rcu_flavor, NULL);

		CHECK(table != NULL);
		for (unsigned long index = 0; index < 16; index++) {
			struct cds_lfht_node *bucket = back_ends[i]->bucket_at(table, index);
			unsigned long reversed = 0;

			for (unsigned int bit = 0; bit < CAA_BITS_PER_LONG; bit++)
				if (index >> bit & 1)
					reversed |= 1UL << (CAA_BITS_PER_LONG - 1 - bit);
			CHECK(bucket->reverse_hash == reversed);
			CHECK(bucket->next != NULL);
		}
		table_end(table);
	}
}

/* Asked for, or ended, by an online thread while the table's own worker is at it. */
static void resized_and_destroyed_while_online(void)
{
	enum { COUNT = 3000 };
	static struct item items[COUNT];

	rcu_register_thread();
	for (int round = 0; round < 20; round++) {
		struct cds_lfht *table = table_of(CDS_LFHT_AUTO_RESIZE);

		fill(table, items, COUNT);
		cds_lfht_resize(table, 1024);
		check_all(table, items, COUNT);
		empty(table, items, COUNT);
		CHECK_EQUAL(cds_lfht_destroy(table, NULL), 0);
	}
	rcu_unregister_thread();
}

static void refused(void)
{
	/* Sizes are powers of two, and the maximum is at least the minimum's. */
	CHECK(cds_lfht_new(3, 4, 0, 0, NULL) == NULL);
	CHECK(cds_lfht_new(4, 3, 0, 0, NULL) == NULL);
	CHECK(cds_lfht_new(4, 4, 5, 0, NULL) == NULL);
	CHECK(cds_lfht_new(4, 0, 0, 0, NULL) == NULL);
	CHECK(cds_lfht_new(0, 4, 0, 0, NULL) == NULL);
	struct cds_lfht *table = cds_lfht_new_flavor(1, 1, 1, 0, &rcu_flavor, NULL);
	CHECK(table != NULL);
	rcu_register_thread();
	struct item item;
	item_init(&item, 1, 1);
	rcu_read_lock();
	cds_lfht_add(table, hash_of(1), &item.node);
	rcu_read_unlock();
	cds_lfht_resize(table, 64);
	rcu_read_lock();
	CHECK(find(table, 1) == &item);
	CHECK_EQUAL(cds_lfht_del(table, &item.node), 0);
	rcu_read_unlock();
	table_end(table);
	rcu_unregister_thread();
}

static void attributes_come_back(void)
{
	pthread_attr_t attributes, *back = NULL;
	struct cds_lfht *table;

	CHECK_EQUAL(pthread_attr_init(&attributes), 0);
	table = cds_lfht_new(4, 4, 0, CDS_LFHT_AUTO_RESIZE, &attributes);
	CHECK(table != NULL);
	CHECK_EQUAL(cds_lfht_destroy(table, &back), 0);
	CHECK(back == &attributes);
	table = cds_lfht_new(4, 4, 0, 0, NULL);
	CHECK_EQUAL(cds_lfht_destroy(table, &back), 0);
	CHECK(back == NULL);
	pthread_attr_destroy(&attributes);
}

static void accounting(void)
{
	enum { COUNT = 5000 };
	static struct item items[COUNT];
	struct cds_lfht *table = table_of(CDS_LFHT_ACCOUNTING);
	long before, after;
	unsigned long count;

	rcu_register_thread();
	fill(table, items, COUNT);
	rcu_read_lock();
	cds_lfht_count_nodes(table, &before, &count, &after);
	rcu_read_unlock();
	CHECK_EQUAL(count, COUNT);
	/* The split counters are exact while nobody changes anything. */
	CHECK_EQUAL(before, COUNT);
	CHECK_EQUAL(after, COUNT);
	rcu_quiescent_state();
	empty(table, items, COUNT);
	rcu_read_lock();
	cds_lfht_count_nodes(table, &before, &count, &after);
	rcu_read_unlock();
	CHECK_EQUAL(count, 0);
	CHECK_EQUAL(before, 0);
	CHECK_EQUAL(after, 0);
	table_end(table);
	rcu_unregister_thread();
}

/* Buckets are nodes of the one list, marked in their links: so many does the table have now. */
static long buckets_of(struct cds_lfht *table)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	long buckets = 1;

	cds_lfht_first(table, &iter);
	for (node = cds_lfht_iter_get_node(&iter); node && (uintptr_t)node > 7;) {
		uintptr_t link = (uintptr_t)__atomic_load_n(&node->next, __ATOMIC_ACQUIRE);

		if (link & 2)
			buckets++;
		node = (struct cds_lfht_node *)(link & ~(uintptr_t)7);
	}
	return buckets;
}

static void grows_by_itself(void)
{
	enum { COUNT = 20000 };
	struct item *items = calloc(COUNT, sizeof(*items));
	struct cds_lfht *table = cds_lfht_new(1, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, NULL);

	CHECK(items != NULL && table != NULL);
	rcu_register_thread();
	fill(table, items, COUNT);
	check_all(table, items, COUNT);
	empty(table, items, COUNT);
	table_end(table);
	rcu_unregister_thread();
	free(items);
}

/*
 * In liburcu a resize whose worker is quicker than whoever asked for it is the last one: the table stays at a few
 * buckets for good, and this waits for ever.
 */
static void no_resize_is_lost(void)
{
	enum { COUNT = 2000, TABLES = 30 };
	struct item *items = calloc(COUNT, sizeof(*items));

	CHECK(items != NULL);
	rcu_register_thread();
	for (int i = 0; i < TABLES; i++) {
		struct cds_lfht *table = cds_lfht_new(1, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, NULL);
		long buckets;

		CHECK(table != NULL);
		fill(table, items, COUNT);
		do {
			rcu_read_lock();
			buckets = buckets_of(table);
			rcu_read_unlock();
			idle_begin();
			sched_yield();
			idle_end();
		} while (buckets < COUNT / 16);
		empty(table, items, COUNT);
		table_end(table);
	}
	rcu_unregister_thread();
	free(items);
}

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
static void *reads_under_load(void *argument)
{
	struct load *load = argument;
	unsigned long random = 1;

	rcu_register_thread();
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
	rcu_unregister_thread();
	return NULL;
}

static struct item *item_new(long key)
{
	struct item *item = malloc(sizeof(*item));

	CHECK(item != NULL);
	item_init(item, key, key + 1);
	return item;
}

static void *writes_under_load(void *argument)
{
	struct load *mine = argument, *load = mine->shared;
	unsigned long random = (unsigned long)mine->writer + 7;

	rcu_register_thread();
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
	rcu_unregister_thread();
	return NULL;
}

static void *resizes_under_load(void *argument)
{
	struct load *load = argument;

	rcu_register_thread();
	for (unsigned long i = 0; i < 12 || !flag_is_set(&load->stop); i++)
		cds_lfht_resize(load->table, 1UL << (i * 5 % 11));
	rcu_unregister_thread();
	return NULL;
}

static void under_load(int flags, int by_hand)
{
	enum { WRITERS = 2, READERS = 2, KEYS = 500 };
	struct load load = { .keys = KEYS };
	struct load writers[WRITERS];
	pthread_t writing[WRITERS], reading[READERS], resizing;
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
		reading[i] = thread_start(reads_under_load, &load);
	if (by_hand)
		resizing = thread_start(resizes_under_load, &load);
	for (int i = 0; i < WRITERS; i++) {
		writers[i] = (struct load){ .writer = i, .shared = &load };
		writing[i] = thread_start(writes_under_load, &writers[i]);
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

static void load_while_it_grows(void)
{
	under_load(CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, 0);
}

static void load_while_resized_by_hand(void)
{
	under_load(0, 1);
}

static long wins;
static struct item contenders[4][200];
static struct cds_lfht *contended;

static void *adds_unique(void *argument)
{
	int me = (int)(intptr_t)argument;

	rcu_register_thread();
	for (long key = 0; key < 200; key++) {
		item_init(&contenders[me][key], key, me);
		rcu_read_lock();
		if (cds_lfht_add_unique(contended, hash_of(key), same_key, &key, &contenders[me][key].node) ==
		    &contenders[me][key].node)
			count_add(&wins, 1);
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return NULL;
}

static void *deletes_all(void *argument)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;

	(void)argument;
	rcu_register_thread();
	rcu_read_lock();
	cds_lfht_for_each(contended, &iter, node)
		if (cds_lfht_del(contended, node) == 0)
			count_add(&wins, 1);
	rcu_read_unlock();
	rcu_unregister_thread();
	return NULL;
}

/* Of many who add one key, or delete one node, one succeeds. */
static void one_winner(void)
{
	pthread_t threads[4];

	wins = 0;
	contended = table_of(CDS_LFHT_AUTO_RESIZE);
	for (intptr_t i = 0; i < 4; i++)
		threads[i] = thread_start(adds_unique, (void *)i);
	for (int i = 0; i < 4; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(count_of(&wins), 200);
	wins = 0;
	for (int i = 0; i < 4; i++)
		threads[i] = thread_start(deletes_all, NULL);
	for (int i = 0; i < 4; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(count_of(&wins), 200);
	table_end(contended);
}

/* Exported for the library's own use, in no header. */
unsigned int cds_lfht_fls_ulong(unsigned long x);
int cds_lfht_get_count_order_ulong(unsigned long x);

static void powers_of_two(void)
{
	CHECK_EQUAL(cds_lfht_fls_ulong(0), 0);
	for (unsigned int i = 0; i < CAA_BITS_PER_LONG; i++) {
		unsigned long power = 1UL << i;

		CHECK_EQUAL(cds_lfht_fls_ulong(power), i + 1);
		CHECK_EQUAL(cds_lfht_fls_ulong(power | 1), i + 1);
		CHECK_EQUAL(cds_lfht_get_count_order_ulong(power), i);
		if (i > 1)
			CHECK_EQUAL(cds_lfht_get_count_order_ulong(power - 1), i);
		if (i > 0 && i < CAA_BITS_PER_LONG - 1)
			CHECK_EQUAL(cds_lfht_get_count_order_ulong(power + 1), i + 1);
	}
	CHECK_EQUAL(cds_lfht_get_count_order_ulong(0), -1);
}

/* A table with a worker of its own goes on in a child. */
static void in_a_child(void)
{
	enum { COUNT = 3000 };
	static struct item items[2 * COUNT];
	struct cds_lfht *table = table_of(CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING);

	rcu_register_thread();
	fill(table, items, COUNT);
	idle_begin();
	call_rcu_before_fork();
	idle_end();
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		call_rcu_after_fork_child();
		for (long i = COUNT; i < 2 * COUNT; i++) {
			rcu_read_lock();
			item_init(&items[i], i, i);
			cds_lfht_add(table, hash_of(i), &items[i].node);
			rcu_read_unlock();
		}
		check_all(table, items, 2 * COUNT);
		empty(table, items, 2 * COUNT);
		table_end(table);
		child_leaves();
	}
	call_rcu_after_fork_parent();
	idle_begin();
	child_ended_well(child);
	idle_end();
	check_all(table, items, COUNT);
	empty(table, items, COUNT);
	table_end(table);
	rcu_unregister_thread();
}

CASES(
	CASE(add_find_delete),
	CASE(duplicates),
	CASE(unique),
	CASE(resized_by_hand),
	CASE(back_end_order),
	CASE(back_end_chunk),
	CASE(back_end_mmap),
	CASE(back_end_chosen),
	CASE(buckets_where_they_belong),
	CASE(resized_and_destroyed_while_online),
	CASE(refused),
	CASE(attributes_come_back),
	CASE(accounting),
	CASE(grows_by_itself),
	CASE(no_resize_is_lost),
	CASE(load_while_it_grows),
	CASE(load_while_resized_by_hand),
	CASE(one_winner),
	CASE(powers_of_two),
	CASE(in_a_child),
)
