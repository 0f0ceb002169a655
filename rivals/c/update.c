/* Replace and retire an object of 64 bytes with liburcu's default flavour, by call_rcu and by
 * defer_rcu. */
#define _LGPL_SOURCE
#define URCU_API_MAP
#include <stdint.h>
#include <stdlib.h>
#include <urcu/urcu-memb.h>

/* As on the Rust side: replacements between two samples of what waits. */
#define BATCH 64

struct object {
	uint64_t words[8];
	/* Used by call_rcu only, and allocated by it only. */
	struct rcu_head head;
};

static struct object *current;
static uint64_t freed;

static struct object *new_object(size_t size, uint64_t word)
{
	uint64_t *words = malloc(size);

	if (!words)
		abort();
	for (int i = 0; i < 8; i++)
		words[i] = word;
	return (struct object *)words;
}

static void free_object(void *object)
{
	free(object);
	__atomic_fetch_add(&freed, 1, __ATOMIC_RELAXED);
}

static void free_by_head(struct rcu_head *head)
{
	free_object(caa_container_of(head, struct object, head));
}

/* How many objects have been freed since the process began. */
uint64_t rivals_update_freed(void) { return __atomic_load_n(&freed, __ATOMIC_RELAXED); }

void rivals_update_begin(void)
{
	current = new_object(sizeof(struct object), 0);
	rcu_defer_register_thread();
}

/* Waits until everything is freed. One retirer only, and it is the caller. */
void rivals_update_end(void)
{
	rcu_barrier();
	rcu_defer_barrier_thread();
	rcu_defer_unregister_thread();
	synchronize_rcu();
	free(current);
	current = NULL;
}

/* One batch of replacements by call_rcu. */
void rivals_update_call(uint64_t word)
{
	for (int i = 0; i < BATCH; i++) {
		struct object *new = new_object(sizeof(struct object), word);
		struct object *old = rcu_xchg_pointer(&current, new);

		call_rcu(&old->head, free_by_head);
	}
}

/* One batch of replacements by defer_rcu, which needs no room in the object. */
void rivals_update_defer(uint64_t word)
{
	for (int i = 0; i < BATCH; i++) {
		struct object *new = new_object(sizeof(new->words), word);
		struct object *old = rcu_xchg_pointer(&current, new);

		defer_rcu(free_object, old);
	}
}

/* Reads the current object until told to stop. The caller is registered. */
uint64_t rivals_update_read_until(const int32_t *stop)
{
	uint64_t sum = 0;

	while (!__atomic_load_n(stop, __ATOMIC_RELAXED)) {
		rcu_read_lock();
		sum += rcu_dereference(current)->words[0];
		rcu_read_unlock();
	}
	return sum;
}
