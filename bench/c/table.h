/*
 * The chains of src/rivals/liburcu/table.rs, in terms of the names that every liburcu flavour maps
 * to its own: an array of pointers to nodes, each replaced as a whole and retired by call_rcu.
 *
 * Included after flavour.h.
 */
#include <stdbool.h>
#include <stdlib.h>

/* As on the Rust side: operations between two quiescent states. */
#define PAUSE 64
#define WORDS 7

struct operation {
	uint64_t key;
	bool replaces;
};

struct node {
	uint64_t key;
	uint64_t value[WORDS];
	struct rcu_head head;
};

struct table {
	uint64_t buckets;
	struct node *chains[];
};

static inline struct node **table_chain(struct table *table, uint64_t key)
{
	uint64_t hash = key * UINT64_C(0x9E3779B97F4A7C15);

	hash ^= hash >> 32;
	return &table->chains[hash & (table->buckets - 1)];
}

static inline struct node *new_node(uint64_t key)
{
	struct node *node = malloc(sizeof(*node));

	if (!node)
		abort();
	node->key = key;
	for (int i = 0; i < WORDS; i++)
		node->value[i] = key;
	return node;
}

static void free_node(struct rcu_head *head)
{
	free(caa_container_of(head, struct node, head));
}

static struct table *NAME(table_new)(uint64_t buckets, const uint64_t *keys, uint64_t count)
{
	struct table *table = calloc(1, sizeof(*table) + buckets * sizeof(*table->chains));

	if (!table)
		abort();
	table->buckets = buckets;
	for (uint64_t i = 0; i < count; i++)
		*table_chain(table, keys[i]) = new_node(keys[i]);
	/* The worker starts here, where it may run on every CPU. */
	get_default_call_rcu_data();
	return table;
}

static void NAME(table_free)(struct table *table)
{
	for (uint64_t i = 0; i < table->buckets; i++)
		free(table->chains[i]);
	free(table);
}

static void NAME(table_barrier)(void) { rcu_barrier(); }

/* Runs the operations so often; not 0 if a search did not find the value of its key. */
static uint64_t NAME(table_run)(struct table *table, const struct operation *operations,
				uint64_t count, uint64_t rounds)
{
	uint64_t wrong = 0;

	for (uint64_t round = 0; round < rounds; round++) {
		for (uint64_t i = 0; i < count; i++) {
			uint64_t key = operations[i].key;
			struct node **chain = table_chain(table, key);

			if (operations[i].replaces) {
				struct node *old = rcu_xchg_pointer(chain, new_node(key));

				call_rcu(&old->head, free_node);
			} else {
				struct node *node;

				rcu_read_lock();
				node = rcu_dereference(*chain);
				wrong |= node && node->key == key ? node->value[0] ^ key : 1;
				rcu_read_unlock();
			}
			if (i % PAUSE == PAUSE - 1)
				rcu_quiescent_state();
		}
	}
	return wrong;
}

/* As on the Rust side. */
struct table_functions {
	const struct flavour *flavour;
	struct table *(*new)(uint64_t buckets, const uint64_t *keys, uint64_t count);
	void (*free)(struct table *table);
	uint64_t (*run)(struct table *table, const struct operation *operations,
			uint64_t count, uint64_t rounds);
	void (*barrier)(void);
};

const struct table_functions NAME(table) = {
	&NAME(flavour), NAME(table_new), NAME(table_free), NAME(table_run), NAME(table_barrier),
};
