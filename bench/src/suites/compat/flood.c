/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A flood: producers that call call_rcu() as fast as they can, and readers beside them. */
#include "program.h"

#define PRODUCERS 16
#define READERS 80
/* With few threads the library shares the room among producers, and not the scheduler. */
#define FEW_PRODUCERS 8
#define FEW_READERS 2
#define LARGE 1024
#define SAMPLES 4

/* Times by their logarithm: eight steps from one power of two to the next. */
#define STEPS 512

struct flood {
	bool stop;
	sem_t ready;
};

struct producer {
	struct flood *flood;
	pthread_t thread;
	long calls;
	uint64_t longest_ns;
} __attribute__((aligned(128)));

struct section_reader {
	struct flood *flood;
	pthread_t thread;
	long sections;
	long times[STEPS];
} __attribute__((aligned(128)));

static void free_large(struct rcu_head *head)
{
	free(caa_container_of(head, struct object, head));
}

static int step_of(uint64_t ns)
{
	int high = 63 - __builtin_clzll(ns | 8);

	return (high << 3) + ((ns >> (high - 3)) & 7);
}

static double time_of(int step)
{
	return (double)((uint64_t)(8 + (step & 7)) << ((step >> 3) - 3));
}

static void *produce(void *argument)
{
	struct producer *producer = argument;

	rcu_register_thread();
	sem_post(&producer->flood->ready);
	while (!__atomic_load_n(&producer->flood->stop, __ATOMIC_RELAXED)) {
		struct object *object = malloc(LARGE);
		uint64_t began, took;

		if (!object)
			fail("out of memory");
		memset(object, 1, LARGE);
		began = now_ns();
		call_rcu(&object->head, free_large);
		took = now_ns() - began;
		if (took > producer->longest_ns)
			producer->longest_ns = took;
		producer->calls++;
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return NULL;
}

static void *read_sections(void *argument)
{
	struct section_reader *reader = argument;

	rcu_register_thread();
	sem_post(&reader->flood->ready);
	while (!__atomic_load_n(&reader->flood->stop, __ATOMIC_RELAXED)) {
		uint64_t began = now_ns();

		rcu_read_lock();
		__asm__ volatile("" : : : "memory");
		rcu_read_unlock();
		reader->times[step_of(now_ns() - began)]++;
		reader->sections++;
		rcu_quiescent_state();
	}
	rcu_unregister_thread();
	return NULL;
}

/* Readers for so many milliseconds, with producers or without. What waits at the end stays. */
static void flooded(long amount_ms, int producers, int count, struct figures *figures)
{
	static struct producer all_producers[PRODUCERS];
	static struct section_reader readers[READERS];
	static long times[STEPS];
	struct flood flood = { .stop = false };
	long calls = 0, least = 0, most = 0, sections = 0, above = 0;
	uint64_t longest_ns = 0, began;
	double took, before = resident(), memory[SAMPLES];
	int step = STEPS;

	sem_init(&flood.ready, 0, 0);
	for (int each = 0; each < count; each++) {
		readers[each].flood = &flood;
		if (pthread_create(&readers[each].thread, NULL, read_sections, &readers[each]))
			fail("no more threads");
		sem_wait(&flood.ready);
	}
	began = now_ns();
	for (int each = 0; each < producers; each++) {
		all_producers[each].flood = &flood;
		if (pthread_create(&all_producers[each].thread, NULL, produce, &all_producers[each]))
			fail("no more threads");
	}
	rcu_thread_offline();
	for (int sample = 0; sample < SAMPLES; sample++) {
		uint64_t until = began + amount_ms * 1000000ULL * (sample + 1) / SAMPLES;

		while (now_ns() < until)
			usleep(1000);
		memory[sample] = resident() - before;
	}
	__atomic_store_n(&flood.stop, true, __ATOMIC_RELAXED);
	took = (now_ns() - began) / 1e9;
	for (int each = 0; each < producers; each++) {
		struct producer *producer = &all_producers[each];

		pthread_join(producer->thread, NULL);
		calls += producer->calls;
		if (!each || producer->calls < least)
			least = producer->calls;
		if (producer->calls > most)
			most = producer->calls;
		if (producer->longest_ns > longest_ns)
			longest_ns = producer->longest_ns;
	}
	for (int each = 0; each < count; each++) {
		pthread_join(readers[each].thread, NULL);
		sections += readers[each].sections;
		for (int one = 0; one < STEPS; one++)
			times[one] += readers[each].times[one];
	}
	rcu_thread_online();
	while (step > 0 && above <= sections / 1000)
		above += times[--step];
	figure(figures, sections / took);
	figure(figures, time_of(step));
	if (!producers)
		return;
	figure(figures, calls / took);
	figure(figures, most ? 100.0 * least / most : 0);
	figure(figures, longest_ns);
	for (int sample = 0; sample < SAMPLES; sample++)
		figure(figures, memory[sample] < 4096 ? 4096 : memory[sample]);
}

void flood(long amount_ms, struct figures *figures)
{
	flooded(amount_ms, PRODUCERS, READERS, figures);
}

void flood_few(long amount_ms, struct figures *figures)
{
	flooded(amount_ms, FEW_PRODUCERS, FEW_READERS, figures);
}

void no_flood(long amount_ms, struct figures *figures)
{
	flooded(amount_ms, 0, READERS, figures);
}
