/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What liburcu's hash table has since 0.14 and 0.15: nodes that are deleted before they are added,
 * and tables with an allocator of the program's.
 */
#include "lfht.h"

static const struct cds_lfht_mm_type *const types[] = {
	NULL, &cds_lfht_mm_order, &cds_lfht_mm_chunk, &cds_lfht_mm_mmap,
};

/* An allocator that counts what it has given, and gives no more than it may. */
struct counting {
	long calls;
	long live;
	long left;
};

/* Inside a section no allocator of the program's is called: it may wait for readers. */
static __thread int in_section;

static int gives(struct counting *counting)
{
	/* liburcu's own library does call it there. */
	CHECK(!in_section || is_liburcu("0.15"));
	count_add(&counting->calls, 1);
	if (count_add(&counting->left, -1) < 0)
		return 0;
	count_add(&counting->live, 1);
	return 1;
}

static void *counting_malloc(void *state, size_t size)
{
	return gives(state) ? malloc(size) : NULL;
}

static void *counting_calloc(void *state, size_t count, size_t size)
{
	return gives(state) ? calloc(count, size) : NULL;
}

static void *counting_realloc(void *state, void *place, size_t size)
{
	(void)state;
	return realloc(place, size);
}

static void *counting_aligned_alloc(void *state, size_t alignment, size_t size)
{
	return gives(state) ? aligned_alloc(alignment, size) : NULL;
}

static void counting_free(void *state, void *place)
{
	struct counting *counting = state;

	/* liburcu's own library does call it there. */
	CHECK(!in_section || is_liburcu("0.15"));
	if (place)
		count_add(&counting->live, -1);
	free(place);
}

/* A table that resizes itself may be freed by a thread of the library's. */
static void all_is_free(struct counting *counting)
{
	idle_begin();
	WAIT_UNTIL(count_of(&counting->live) == 0);
	idle_end();
}

static struct cds_lfht_alloc allocator_of(struct counting *counting)
{
	return (struct cds_lfht_alloc){
		.malloc = counting_malloc, .calloc = counting_calloc, .realloc = counting_realloc,
		.aligned_alloc = counting_aligned_alloc, .free = counting_free, .state = counting,
	};
}

static void fill(struct cds_lfht *table, struct item *items, long from, long to)
{
	for (long i = from; i < to; i++) {
		rcu_read_lock();
		in_section = 1;
		item_init(&items[i], i, i);
		cds_lfht_add(table, hash_of(i), &items[i].node);
		in_section = 0;
		rcu_read_unlock();
		rcu_quiescent_state();
	}
}

static void check_and_empty(struct cds_lfht *table, struct item *items, long count)
{
	for (long i = 0; i < count; i++) {
		rcu_read_lock();
		in_section = 1;
		CHECK(find(table, i) == &items[i]);
		CHECK_EQUAL(cds_lfht_del(table, &items[i].node), 0);
		in_section = 0;
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	idle_begin();
	synchronize_rcu();
	idle_end();
}

CASE(all_memory_comes_back)
{
	enum { COUNT = 4000 };
	struct item *items = calloc(COUNT, sizeof(*items));
	int flags[] = { 0, CDS_LFHT_ACCOUNTING, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING };

	CHECK(items != NULL);
	rcu_register_thread();
	for (unsigned int i = 0; i < 4; i++) {
		for (unsigned int j = 0; j < 3; j++) {
			struct counting counting = { .left = 1000000 };
			struct cds_lfht_alloc alloc = allocator_of(&counting);
			unsigned long max = types[i] == &cds_lfht_mm_order ? 0 : 1 << 14;
			struct cds_lfht *table = _cds_lfht_new_with_alloc(4, 4, max, flags[j], types[i], &rcu_flavor,
					&alloc, NULL);

			CHECK(table != NULL);
			CHECK(count_of(&counting.calls) > 0 && count_of(&counting.live) > 0);
			fill(table, items, 0, COUNT);
			idle_begin();
			cds_lfht_resize(table, 1 << 12);
			cds_lfht_resize(table, 16);
			cds_lfht_resize(table, 1 << 10);
			idle_end();
			check_and_empty(table, items, COUNT);
			table_end(table);
			all_is_free(&counting);
		}
	}
	rcu_unregister_thread();
	free(items);
}

/* By itself: a table that grows takes memory of the allocator. */
READER_CASE(grows_by_the_allocator)
{
	enum { COUNT = 4000 };
	static struct item items[COUNT];
	struct counting counting = { .left = 1000000 };
	struct cds_lfht_alloc alloc = allocator_of(&counting);
	struct cds_lfht *table = cds_lfht_new_with_flavor_alloc(1, 1, 0,
			CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, &rcu_flavor, &alloc, NULL);
	long before;

	CHECK(table != NULL);
	before = count_of(&counting.calls);
	fill(table, items, 0, COUNT);
	idle_begin();
	WAIT_UNTIL(count_of(&counting.calls) > before);
	idle_end();
	check_and_empty(table, items, COUNT);
	table_end(table);
	all_is_free(&counting);
}

/* The library's own allocator. */
READER_CASE(no_allocator_is_the_librarys)
{
	struct cds_lfht *table = cds_lfht_new_with_flavor_alloc(4, 4, 0, 0, &rcu_flavor, NULL, NULL);

	CHECK(table != NULL);
	table_end(table);
}

/* Wherever it runs out: no table, and nothing is kept. */
CASE(without_memory_there_is_no_table)
{
	for (unsigned int i = 0; i < 4; i++) {
		struct cds_lfht *table = NULL;

		for (long left = 0; !table; left++) {
			struct counting counting = { .left = left };
			struct cds_lfht_alloc alloc = allocator_of(&counting);

			CHECK(left < 100);
			table = _cds_lfht_new_with_alloc(64, 16, 1 << 10, 0, types[i], &rcu_flavor, &alloc, NULL);
			if (table) {
				rcu_register_thread();
				table_end(table);
				rcu_unregister_thread();
			}
			CHECK_EQUAL(count_of(&counting.live), 0);
		}
	}
}

/* Where it runs out while a table grows, the table stays as big as it is, and works. */
READER_CASE(without_memory_a_table_stays_small)
{
	enum { COUNT = 2000 };
	static struct item items[COUNT];
	struct counting counting = { .left = 1000000 };
	struct cds_lfht_alloc alloc = allocator_of(&counting);
	struct cds_lfht *table = cds_lfht_new_with_flavor_alloc(16, 16, 0,
			CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, &rcu_flavor, &alloc, NULL);

	CHECK(table != NULL);
	__atomic_store_n(&counting.left, 0, __ATOMIC_SEQ_CST);
	fill(table, items, 0, COUNT);
	check_and_empty(table, items, COUNT);
	table_end(table);
	all_is_free(&counting);
}

READER_CASE(deleted_before_it_is_added)
{
	struct cds_lfht *table = table_of(0);
	struct item item = { .key = 1 };

	cds_lfht_node_init_deleted(&item.node);
	CHECK(cds_lfht_is_node_deleted(&item.node));
	rcu_read_lock();
	cds_lfht_add(table, hash_of(1), &item.node);
	CHECK(!cds_lfht_is_node_deleted(&item.node));
	CHECK(find(table, 1) == &item);
	CHECK_EQUAL(cds_lfht_del(table, &item.node), 0);
	CHECK(cds_lfht_is_node_deleted(&item.node));
	rcu_read_unlock();
	rcu_quiescent_state();
	table_end(table);
}

CASE(entries)
{
	struct item item = { .key = 7 };

	CHECK(cds_lfht_entry(&item.node, struct item, node) == &item);
	CHECK(cds_lfht_entry((struct cds_lfht_node *)NULL, struct item, node) == NULL);
}
