/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Does random operations on hash tables and writes down everything that can be seen of them: what each call answered,
 * which node, the order of the whole table. One thread, and the same seed, so that two libraries write the same.
 *
 * operations SEED STEPS
 */
#include <stdio.h>
#include <stdlib.h>
#include <urcu/urcu-memb.h>
#include <urcu/rculfhash.h>

extern unsigned int cds_lfht_fls_ulong(unsigned long x);
extern int cds_lfht_get_count_order_ulong(unsigned long x);

struct item {
	struct cds_lfht_node node;
	long key, number;
	struct item *gone;
};

static unsigned long state;
static struct item *gone;
static long items;
static unsigned long mask;	/* of hashes: few make long runs */

static unsigned long draw(unsigned long below)
{
	unsigned long z = state += 0x9e3779b97f4a7c15UL;

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9UL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebUL;
	return (z ^ (z >> 31)) % below;
}

static unsigned long hash_of(long key)
{
	unsigned long hash = (unsigned long)key * 0x9e3779b97f4a7c15UL;

	return (hash ^ (hash >> 31)) & mask;
}

static struct item *item_of(struct cds_lfht_node *node)
{
	return node ? caa_container_of(node, struct item, node) : NULL;
}

static long number_of(struct cds_lfht_node *node)
{
	return node ? item_of(node)->number : -1;
}

static int match(struct cds_lfht_node *node, const void *key)
{
	return item_of(node)->key == *(const long *)key;
}

static struct item *item_new(long key)
{
	struct item *item = calloc(1, sizeof(*item));

	if (!item)
		abort();
	cds_lfht_node_init(&item->node);
	item->key = key;
	item->number = items++;
	return item;
}

/* Freed after a grace period, by and by. */
static void item_gone(struct cds_lfht_node *node)
{
	item_of(node)->gone = gone;
	gone = item_of(node);
}

static void free_gone(void)
{
	urcu_memb_synchronize_rcu();
	while (gone) {
		struct item *next = gone->gone;

		free(gone);
		gone = next;
	}
}

static void show(struct cds_lfht *table)
{
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	unsigned long count;
	long before, after;

	urcu_memb_read_lock();
	printf("table:");
	cds_lfht_for_each(table, &iter, node)
		printf(" %ld/%ld", number_of(node), item_of(node)->key);
	cds_lfht_count_nodes(table, &before, &count, &after);
	printf("; %lu nodes\n", count);
	urcu_memb_read_unlock();
}

static void step(struct cds_lfht *table)
{
	long key = (long)draw(40), other = (long)draw(40);
	unsigned long hash = hash_of(key), what = draw(10);
	struct item *item;
	struct cds_lfht_iter iter, old;
	struct cds_lfht_node *node;
	int answer;

	urcu_memb_read_lock();
	cds_lfht_lookup(table, hash, match, &key, &iter);
	node = cds_lfht_iter_get_node(&iter);
	switch (what) {
	case 0:
	case 1:
		item = item_new(key);
		cds_lfht_add(table, hash, &item->node);
		printf("add %ld: %ld\n", key, item->number);
		break;
	case 2:
		item = item_new(key);
		node = cds_lfht_add_unique(table, hash, match, &key, &item->node);
		printf("add_unique %ld: %ld\n", key, number_of(node));
		if (node != &item->node)
			free(item);
		break;
	case 3:
		item = item_new(key);
		node = cds_lfht_add_replace(table, hash, match, &key, &item->node);
		printf("add_replace %ld: %ld\n", key, number_of(node));
		if (node)
			item_gone(node);
		break;
	case 4:
		item = item_new(key);
		answer = cds_lfht_replace(table, &iter, hash, match, &key, &item->node);
		printf("replace %ld: %d, %ld", key, answer, number_of(node));
		if (answer) {
			free(item);
		} else {
			printf(", deleted %d", !!cds_lfht_is_node_deleted(node));
			struct item *again = item_new(key);
			printf(", again %d", cds_lfht_replace(table, &iter, hash, match, &key, &again->node));
			printf(", del %d", cds_lfht_del(table, node));
			free(again);
			item_gone(node);
		}
		printf("\n");
		break;
	case 5:
		/* Another key's node, of the same hash or of another one. */
		item = item_new(key);
		cds_lfht_lookup(table, hash_of(other), match, &other, &old);
		if (other != key)
			printf("replace %ld by %ld: %d\n", other, key,
				cds_lfht_replace(table, &old, hash, match, &key, &item->node));
		free(item);
		break;
	case 6:
		printf("duplicates of %ld:", key);
		cds_lfht_for_each_duplicate(table, hash, match, &key, &iter, node)
			printf(" %ld", number_of(node));
		printf("\n");
		break;
	default:
		answer = cds_lfht_del(table, node);
		printf("del %ld: %d, %ld", key, answer, number_of(node));
		if (!answer) {
			printf(", deleted %d", !!cds_lfht_is_node_deleted(node));
			printf(", again %d", cds_lfht_del(table, node));
			/* Going on from a node that is deleted. */
			cds_lfht_next_duplicate(table, match, &key, &iter);
			printf(", next %ld", number_of(cds_lfht_iter_get_node(&iter)));
			item_gone(node);
		}
		printf("\n");
	}
	urcu_memb_read_unlock();
}

static void run(const char *name, unsigned long init, unsigned long min, unsigned long max, int flags,
		const struct cds_lfht_mm_type *mm, long steps)
{
	pthread_attr_t attr, *back = NULL;
	struct cds_lfht *table = _cds_lfht_new(init, min, max, flags, mm, &urcu_memb_flavor, &attr);
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	unsigned long count;
	long before, after;

	printf("%s %lu %lu %lu flags %d: %s\n", name, init, min, max, flags, table ? "made" : "refused");
	if (!table)
		return;
	show(table);
	for (long i = 0; i < steps; i++) {
		step(table);
		if (i % 64 == 63) {
			show(table);
			cds_lfht_resize(table, 1UL << draw(9));
			free_gone();
			show(table);
		}
	}
	urcu_memb_read_lock();
	cds_lfht_count_nodes(table, &before, &count, &after);
	printf("counted %ld %lu %ld\n", before, count, after);
	urcu_memb_read_unlock();
	if (count) {
		int answer = cds_lfht_destroy(table, &back);

		printf("destroy: %d, attr %d\n", answer, back == &attr);
	}
	urcu_memb_read_lock();
	cds_lfht_for_each(table, &iter, node) {
		printf("last %ld: %d\n", number_of(node), cds_lfht_del(table, node));
		item_gone(node);
	}
	cds_lfht_first(table, &iter);
	printf("first of none: %ld\n", number_of(cds_lfht_iter_get_node(&iter)));
	urcu_memb_read_unlock();
	free_gone();
	int answer = cds_lfht_destroy(table, &back);
	printf("destroy: %d, attr %d\n", answer, back == &attr);
}

int main(int argc, char **argv)
{
	static const unsigned long masks[] = { ~0UL, 7, 0, 0xff00000000000000UL };
	static const unsigned long numbers[] = { 0, 1, 2, 3, 4, 5, 7, 8, 9, 1000, 1UL << 32, (1UL << 32) + 1, 1UL << 63, ~0UL };
	long steps = argc > 2 ? atol(argv[2]) : 500;

	state = argc > 1 ? strtoul(argv[1], NULL, 0) : 0;
	urcu_memb_register_thread();
	for (unsigned int i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		printf("%lu: fls %u, order %d\n", numbers[i], cds_lfht_fls_ulong(numbers[i]),
			cds_lfht_get_count_order_ulong(numbers[i]));
	/* What is refused. */
	run("sizes", 0, 1, 0, 0, NULL, 0);
	run("sizes", 3, 1, 0, 0, NULL, 0);
	run("sizes", 1, 0, 0, 0, NULL, 0);
	run("sizes", 1, 3, 0, 0, NULL, 0);
	run("sizes", 1, 1, 3, 0, NULL, 0);
	run("sizes", 64, 1, 16, 0, NULL, 10);
	run("sizes", 1, 64, 16, 0, NULL, 10);
	for (unsigned int m = 0; m < sizeof(masks) / sizeof(*masks); m++) {
		/* Debian's grows for ever where hashes meet: by the length of chains, which no bucket makes shorter. */
		unsigned long most = m == 0 ? 0 : 1024;

		mask = masks[m];
		for (int flags = 0; flags < 4; flags++) {
			run("order", 1, 1, most, flags, &cds_lfht_mm_order, steps);
			run("order", 16, 8, 256, flags, &cds_lfht_mm_order, steps);
			run("chunk", 4, 4, 256, flags, &cds_lfht_mm_chunk, steps);
			run("mmap", 1, 2, 256, flags, &cds_lfht_mm_mmap, steps);
			run("any", 1, 1, most, flags, NULL, steps);
			run("any", 64, 1, 1024, flags, NULL, steps);
		}
	}
	urcu_memb_unregister_thread();
	return 0;
}
