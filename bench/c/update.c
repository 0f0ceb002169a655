/* Replace and retire an object of 64 bytes with liburcu's default flavour, by call_rcu and by
 * defer_rcu; and callbacks alone. */
#define _LGPL_SOURCE
#define URCU_API_MAP
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <urcu/urcu-memb.h>

#include "ticks.h"

/* As on the Rust side: reads that are timed together, and how often who holds a section looks. */
#define READS 64
#define HOLD_LOOK_US 2000

struct object {
	uint64_t words[8];
	/* Used by call_rcu only, and allocated by it only. */
	struct rcu_head head;
};

static struct object *current;

/* Each has one writer at a time: call_rcu's one worker, and the thread that has defer_rcu's lock.
 * So the count costs no locked instruction, as on the Rust side. */
static uint64_t freed_by_call, freed_by_defer;

static inline void count(uint64_t *counter)
{
	uint64_t value = __atomic_load_n(counter, __ATOMIC_RELAXED);

	__atomic_store_n(counter, value + 1, __ATOMIC_RELAXED);
}

static inline struct object *new_object(size_t size)
{
	uint64_t *words = malloc(size);

	if (!words)
		abort();
	for (int i = 0; i < 8; i++)
		words[i] = 1;
	return (struct object *)words;
}

static void free_called(struct rcu_head *head)
{
	free(caa_container_of(head, struct object, head));
	count(&freed_by_call);
}

static void free_deferred(void *object)
{
	free(object);
	count(&freed_by_defer);
}

/* How many objects have been freed since the process began. */
static uint64_t freed_by_call_now(void)
{
	return __atomic_load_n(&freed_by_call, __ATOMIC_RELAXED);
}

static uint64_t freed_by_defer_now(void)
{
	return __atomic_load_n(&freed_by_defer, __ATOMIC_RELAXED);
}

void rivals_update_begin(void)
{
	current = new_object(sizeof(struct object));
	/* The worker starts here, where it may run on every CPU. */
	get_default_call_rcu_data();
}

/* Waits until everything is freed. Updaters and readers have ended. */
void rivals_update_end(void)
{
	rcu_barrier();
	synchronize_rcu();
	free(current);
	current = NULL;
}

void rivals_update_barrier(void) { rcu_barrier(); }

static void begin_to_defer(void)
{
	if (rcu_defer_register_thread())
		abort();
}

/* Waits until what the thread has deferred is freed. */
static void end_to_defer(void) { rcu_defer_unregister_thread(); }

static void nothing(void) {}

static inline void replace_by_call(void)
{
	struct object *new = new_object(sizeof(struct object));
	struct object *old = rcu_xchg_pointer(&current, new);

	call_rcu(&old->head, free_called);
}

/* Needs no room in the object. */
static inline void replace_by_defer(void)
{
	struct object *new = new_object(sizeof(new->words));
	struct object *old = rcu_xchg_pointer(&current, new);

	defer_rcu(free_deferred, old);
}

static void call(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		replace_by_call();
}

static void defer(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		replace_by_defer();
}

/* The same with the time that each takes. */
static void call_timed(uint32_t *samples, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = rivals_ticks();

		replace_by_call();
		samples[i] = rivals_ticks_since(begin);
	}
}

static void defer_timed(uint32_t *samples, uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = rivals_ticks();

		replace_by_defer();
		samples[i] = rivals_ticks_since(begin);
	}
}

/* A way to retire, as on the Rust side: what a thread does before it updates and afterwards; so
 * many updates; and how many objects were freed. */
struct way {
	void (*begin)(void);
	void (*end)(void);
	void (*replace)(uint64_t count);
	void (*replace_timed)(uint32_t *samples, uint64_t count);
	uint64_t (*freed)(void);
};

const struct way rivals_by_call = { nothing, nothing, call, call_timed, freed_by_call_now };
const struct way rivals_by_defer = {
	begin_to_defer, end_to_defer, defer, defer_timed, freed_by_defer_now,
};

static inline uint64_t read_one(void)
{
	uint64_t word;

	rcu_read_lock();
	word = rcu_dereference(current)->words[0];
	rcu_read_unlock();
	return word;
}

/* Reads until told to stop; how often. The caller is registered. */
uint64_t rivals_update_read_until(const int32_t *stop)
{
	uint64_t sum = 0, reads = 0;

	/* Once at least: the others may be done before this thread has a CPU. */
	do {
		for (int i = 0; i < READS; i++)
			sum += read_one();
		reads += READS;
	} while (!__atomic_load_n(stop, __ATOMIC_RELAXED));
	/* Every read saw an object. */
	if (sum != reads)
		abort();
	return reads;
}

/* Reads READS times for each sample. The caller is registered. */
void rivals_update_read_timed(uint32_t *samples, uint64_t count)
{
	uint64_t sum = 0;

	for (uint64_t i = 0; i < count; i++) {
		uint64_t begin = rivals_ticks();

		for (int j = 0; j < READS; j++)
			sum += read_one();
		samples[i] = rivals_ticks_since(begin);
	}
	if (sum != count * READS)
		abort();
}

/* Enters a section, reads, says so, and leaves it when it is released. The caller is registered. */
void rivals_update_hold(int32_t *entered, const int32_t *release)
{
	const struct object *object;

	rcu_read_lock();
	object = rcu_dereference(current);
	__atomic_store_n(entered, 1, __ATOMIC_RELEASE);
	while (!__atomic_load_n(release, __ATOMIC_RELAXED))
		usleep(HOLD_LOOK_US);
	/* It is there for as long as the section lasts. */
	if (object->words[0] != 1)
		abort();
	rcu_read_unlock();
}

/* A callback of two words, which it adds to a sum: they make 1. */
struct call {
	struct rcu_head head;
	uint64_t a, b;
};

static uint64_t calls_sum;

static void call_add(struct rcu_head *head)
{
	struct call *call = caa_container_of(head, struct call, head);

	__atomic_fetch_add(&calls_sum, call->a + call->b, __ATOMIC_RELAXED);
}

uint64_t rivals_calls_sum(void) { return __atomic_load_n(&calls_sum, __ATOMIC_RELAXED); }

/* As many as are queued together at most: `BURST` in `src/cases/enqueue.rs` is the same number. */
static struct call calls[1024];

/* Queues so many, none of which is queued. The caller is registered. */
void rivals_calls_queue(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++) {
		calls[i].a = UINT64_MAX - 1;
		calls[i].b = 3;
		call_rcu(&calls[i].head, call_add);
	}
}
