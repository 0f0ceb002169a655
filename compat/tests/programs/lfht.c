/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The resizable hash table: every function with every answer, each memory back-end, each flag. Under load it is in
 * lfht_load.c. Compiled for a flavour, since a table belongs to one.
 */
#include "lfht.h"

READER_CASE(add_find_delete)
{
	struct cds_lfht *table = table_of(0);
	struct item items[100];
	struct cds_lfht_iter iter;

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
}

READER_CASE(duplicates)
{
	struct cds_lfht *table = table_of(0);
	struct item items[30];
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	struct item *item;
	int count[3] = { 0, 0, 0 };

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
}

READER_CASE(unique)
{
	struct cds_lfht *table = table_of(0);
	struct item first, second, third, other;
	long key = 7;

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

READER_CASE(resized_by_hand)
{
	enum { COUNT = 1000 };
	static struct item items[COUNT];
	static const unsigned long sizes[] = { 8, 1024, 256, 4096, 1, 64, 65536, 2, 1 };
	struct cds_lfht *table = cds_lfht_new(1, 1, 0, 0, NULL);

	CHECK(table != NULL);
	fill(table, items, COUNT);
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		cds_lfht_resize(table, sizes[i]);
		check_all(table, items, COUNT);
	}
	empty(table, items, COUNT);
	table_end(table);
}

/* A QSBR thread that is offline, or no reader yet, was online then, and could not register. */
CASE(resized_by_hand_while_offline)
{
	struct cds_lfht *table = table_of(0);

	cds_lfht_resize(table, 64);
	cds_lfht_resize(table, 8);
	CHECK(!rcu_read_ongoing());
	rcu_register_thread();
	idle_begin();
	cds_lfht_resize(table, 64);
	cds_lfht_resize(table, 8);
	CHECK(!rcu_read_ongoing());
	idle_end();
	rcu_unregister_thread();
	table_end(table);
}

static void with_back_end(const struct cds_lfht_mm_type *back_end, unsigned long max)
{
	enum { COUNT = 3000 };
	static struct item items[COUNT];
	/*
	 * In liburcu a QSBR table's own worker is online while it waits for the mutex of the thread that resizes by hand, which
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

CASE(back_end_order)
{
	with_back_end(&cds_lfht_mm_order, 0);
	with_back_end(&cds_lfht_mm_order, 4096);
}

CASE(back_end_chunk)
{
	with_back_end(&cds_lfht_mm_chunk, 1 << 16);
}

CASE(back_end_mmap)
{
	with_back_end(&cds_lfht_mm_mmap, 1 << 16);
}

CASE(back_end_chosen)
{
	with_back_end(NULL, 0);
	with_back_end(NULL, 1 << 12);
}

/* Where a back-end keeps its buckets: found by the function in its structure, whichever thread calls it. */
CASE(buckets_where_they_belong)
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
READER_CASE(resized_and_destroyed_while_online)
{
	enum { COUNT = 3000 };
	static struct item items[COUNT];

	for (int round = 0; round < 20; round++) {
		struct cds_lfht *table = table_of(CDS_LFHT_AUTO_RESIZE);

		fill(table, items, COUNT);
		cds_lfht_resize(table, 1024);
		check_all(table, items, COUNT);
		empty(table, items, COUNT);
		CHECK_EQUAL(cds_lfht_destroy(table, NULL), 0);
	}
}

/*
 * Ended by a thread in a section, while the table's own worker waits for that section to shrink it. The items may be
 * freed when the table is gone.
 */
READER_CASE(destroyed_in_a_section)
{
	enum { COUNT = 3000 };

	for (int round = 0; round < 20; round++) {
		struct item *items = calloc(COUNT, sizeof(*items));
		struct cds_lfht *table = table_of(CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING);

		CHECK(items != NULL);
		fill(table, items, COUNT);
		rcu_read_lock();
		/* One is left: the table stays as it is. */
		for (long i = 1; i < COUNT; i++)
			CHECK_EQUAL(cds_lfht_del(table, &items[i].node), 0);
		CHECK_EQUAL(cds_lfht_destroy(table, NULL), -EPERM);
		CHECK(find(table, 0) == &items[0]);
		CHECK_EQUAL(cds_lfht_del(table, &items[0].node), 0);
		CHECK_EQUAL(cds_lfht_destroy(table, NULL), 0);
		rcu_read_unlock();
		rcu_quiescent_state();
		free(items);
	}
}

READER_CASE(refused)
{
	/* Sizes are powers of two, and the maximum is at least the minimum's. */
	CHECK(cds_lfht_new(3, 4, 0, 0, NULL) == NULL);
	CHECK(cds_lfht_new(4, 3, 0, 0, NULL) == NULL);
	CHECK(cds_lfht_new(4, 4, 5, 0, NULL) == NULL);
	CHECK(cds_lfht_new(4, 0, 0, 0, NULL) == NULL);
	CHECK(cds_lfht_new(0, 4, 0, 0, NULL) == NULL);
	struct cds_lfht *table = cds_lfht_new_flavor(1, 1, 1, 0, &rcu_flavor, NULL);
	CHECK(table != NULL);
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
}

/* 0, which only the memory type order has, is no limit; others below the minimum count as that. */
CASE(maximum_that_is_no_power_of_two)
{
	static const unsigned long sizes[] = { 0, 1, 3, 8, 100, 4096 };
	const struct cds_lfht_mm_type *types[] = {
		NULL, &cds_lfht_mm_order, &cds_lfht_mm_chunk, &cds_lfht_mm_mmap,
	};

	for (size_t type = 0; type < 4; type++) {
		for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
			unsigned long max = sizes[i];
			bool is_right = max ? !(max & (max - 1)) : type < 2;
			struct cds_lfht *table = _cds_lfht_new(8, 8, max, 0, types[type], &rcu_flavor, NULL);

			CHECK_EQUAL(table != NULL, is_right);
			if (table)
				CHECK_EQUAL(cds_lfht_destroy(table, NULL), 0);
		}
	}
}

CASE(attributes_come_back)
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

READER_CASE(accounting)
{
	enum { COUNT = 5000 };
	static struct item items[COUNT];
	struct cds_lfht *table = table_of(CDS_LFHT_ACCOUNTING);
	long before, after;
	unsigned long count;

	fill(table, items, COUNT);
	rcu_read_lock();
	cds_lfht_count_nodes(table, &before, &count, &after);
	rcu_read_unlock();
	CHECK_EQUAL(count, COUNT);
	/* The split counters are exact while nothing changes. */
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

/*
 * In liburcu a resize whose worker is quicker than the thread that asked for it is the last one: the table stays at a few
 * buckets for good, and this waits for ever.
 */
READER_CASE(no_resize_is_lost)
{
	enum { COUNT = 2000, TABLES = 30 };
	static struct item items[COUNT];

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
}

/* Exported for the library's own use, in no header. */
unsigned int cds_lfht_fls_ulong(unsigned long x);
int cds_lfht_get_count_order_ulong(unsigned long x);

CASE(powers_of_two)
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

/* A table with a worker of its own continues in a child. */
READER_CASE(in_a_child)
{
	enum { COUNT = 3000 };
	static struct item items[2 * COUNT];
	struct cds_lfht *table = table_of(CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING);

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
}
