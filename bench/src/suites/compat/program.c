/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What `rcu bench compat` starts with Debian's library and with ours: a program as users write them. It is compiled
 * against Debian's headers, readers inlined, once for each flavour, and linked with the library as any other; each
 * measurement is a process of its own. Objects come from malloc() one by one and are freed by their callbacks.
 *
 * It takes the name of a measurement and an amount, and writes a line of figures: nanoseconds, operations a second,
 * bytes, or numbers of objects, in the order in which `compat.rs` names them. Before that it writes the path of every
 * mapped library of either kind, a line each.
 */
#include "program.h"
#include <urcu/rculfhash.h>

static int ascending(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;

	return (a > b) - (a < b);
}

static double median_of(uint64_t *all, long count)
{
	qsort(all, count, sizeof *all, ascending);
	return all[count / 2];
}

static void *allocated(size_t size)
{
	void *memory = calloc(1, size);

	if (!memory)
		fail("out of memory");
	return memory;
}

/* ---- readers -------------------- */

static void pair_inlined(long amount, struct figures *figures)
{
	uint64_t began = now_ns();

	for (long each = 0; each < amount; each++) {
		rcu_read_lock();
		__asm__ volatile("" : : : "memory");
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	figure(figures, (double)(now_ns() - began) / amount);
}

/* In a file that does not define _LGPL_SOURCE. */
void pairs_exported(long amount);

static void pair_exported(long amount, struct figures *figures)
{
	uint64_t began = now_ns();

	pairs_exported(amount);
	figure(figures, (double)(now_ns() - began) / amount);
}

/* ---- grace periods -------------------- */

struct others {
	pthread_t *threads;
	int count;
	bool stop;
	long section_ns; /* how long sections last; none for threads that only are there */
	bool reads;
	sem_t ready;
	sem_t leave;
};

static void *run_beside(void *argument)
{
	struct others *others = argument;

	rcu_register_thread();
	if (!others->reads) {
		rcu_thread_offline();
		sem_post(&others->ready);
		sem_wait(&others->leave);
		rcu_thread_online();
	} else {
		bool first = true;

		while (!__atomic_load_n(&others->stop, __ATOMIC_RELAXED)) {
			rcu_read_lock();
			if (first)
				sem_post(&others->ready);
			first = false;
			if (others->section_ns) {
				uint64_t until = now_ns() + others->section_ns;

				while (now_ns() < until)
					;
			}
			rcu_read_unlock();
			rcu_quiescent_state();
		}
	}
	rcu_unregister_thread();
	return NULL;
}

/* Where one takes less than a look at the clock, so many are measured between two looks. */
#define ALONE_RUN 32

static void grace_periods(long amount, int run, int threads, bool reads, long section_ns, struct figures *figures)
{
	struct others others = { .count = threads, .reads = reads, .section_ns = section_ns };
	long runs = (amount + run - 1) / run;
	uint64_t *all = allocated(runs * sizeof *all);

	others.threads = allocated((threads + 1) * sizeof *others.threads);
	sem_init(&others.ready, 0, 0);
	sem_init(&others.leave, 0, 0);
	for (int each = 0; each < threads; each++) {
		pthread_attr_t attributes;

		pthread_attr_init(&attributes);
		pthread_attr_setstacksize(&attributes, 64 << 10);
		if (pthread_create(&others.threads[each], &attributes, run_beside, &others))
			fail("no more threads");
		sem_wait(&others.ready);
	}
	for (long each = 0; each < runs; each++) {
		uint64_t began = now_ns();

		for (int one = 0; one < run; one++)
			synchronize_rcu();
		all[each] = now_ns() - began;
	}
	__atomic_store_n(&others.stop, true, __ATOMIC_RELAXED);
	for (int each = 0; each < threads; each++)
		sem_post(&others.leave);
	rcu_thread_offline();
	for (int each = 0; each < threads; each++)
		pthread_join(others.threads[each], NULL);
	rcu_thread_online();
	figure(figures, median_of(all, runs) / run);
	free(others.threads);
	free(all);
}

static void grace_alone(long amount, struct figures *figures)
{
	grace_periods(amount, ALONE_RUN, 0, false, 0, figures);
}

static void grace_busy(long amount, struct figures *figures)
{
	grace_periods(amount, 1, 1, true, 0, figures);
}

static void grace_idle(long amount, struct figures *figures)
{
	grace_periods(amount, 1, 1000, false, 0, figures);
}

static void grace_sections(long amount, struct figures *figures)
{
	grace_periods(amount, 1, 1, true, 100000, figures);
}

/* ---- callbacks -------------------- */

/* Objects that were freed. Written by one thread at a time. */
static long freed;

static void free_object(struct rcu_head *head)
{
	free(caa_container_of(head, struct object, head));
	__atomic_store_n(&freed, freed + 1, __ATOMIC_RELAXED);
}

static void free_memory(void *memory)
{
	free(memory);
	__atomic_store_n(&freed, freed + 1, __ATOMIC_RELAXED);
}

/* Objects that are allocated before the clock is looked at, and handed over between two looks. */
#define RUN 64

/*
 * An updater: allocates, and hands over to be freed. What that costs: a call alone; the loop with its allocations, each
 * time; CPU time of all threads, to the end; and at the end of the loop what waits, the memory, and the barrier.
 */
static void update(long amount, bool defers, struct figures *figures)
{
	uint64_t calls = 0, began = now_ns(), ended, last;
	double cpu_began = cpu_ns(), before = resident(), waiting, memory;
	struct object *run[RUN];

	for (long each = 0; each < amount; each += RUN) {
		uint64_t before_calls;

		for (int one = 0; one < RUN; one++) {
			run[one] = malloc(sizeof *run[one]);
			if (!run[one])
				fail("out of memory");
			run[one]->payload[0] = each;
		}
		before_calls = now_ns();
		if (defers) {
			for (int one = 0; one < RUN; one++)
				defer_rcu(free_memory, run[one]);
		} else {
			for (int one = 0; one < RUN; one++)
				call_rcu(&run[one]->head, free_object);
		}
		calls += now_ns() - before_calls;
		/* A QSBR reader is to be quiescent now and then, whatever it does. */
		if (each % (16 * RUN) == 0)
			rcu_quiescent_state();
	}
	ended = now_ns();
	waiting = (amount + RUN - 1) / RUN * RUN - __atomic_load_n(&freed, __ATOMIC_RELAXED);
	memory = resident() - before;
	if (defers)
		rcu_defer_barrier();
	else
		rcu_barrier();
	last = now_ns();
	figure(figures, (double)calls / amount);
	figure(figures, (double)(ended - began) / amount);
	figure(figures, (cpu_ns() - cpu_began) / amount);
	figure(figures, waiting < 1 ? 1 : waiting);
	figure(figures, memory < 4096 ? 4096 : memory);
	figure(figures, last - ended);
}

static void call_update(long amount, struct figures *figures)
{
	update(amount, false, figures);
}

static void defer_update(long amount, struct figures *figures)
{
	if (rcu_defer_register_thread())
		fail("cannot register to defer");
	update(amount, true, figures);
	rcu_defer_unregister_thread();
}

static void nothing(struct rcu_head *head)
{
	(void)head;
}

static void call_barrier(long amount, struct figures *figures)
{
	uint64_t *all = allocated(amount * sizeof *all);
	struct rcu_head head;

	for (long each = 0; each < amount; each++) {
		uint64_t began;

		call_rcu(&head, nothing);
		began = now_ns();
		rcu_barrier();
		all[each] = now_ns() - began;
	}
	figure(figures, median_of(all, amount));
	free(all);
}

/* Two kinds of waiters: this thread synchronizes, another one waits behind a callback of its own, again and again. */
struct rivalry {
	sem_t ready;
	bool stop;
	long barriers;
};

static void *call_and_wait(void *argument)
{
	struct rivalry *rivalry = argument;
	struct rcu_head head;

	rcu_register_thread();
	sem_post(&rivalry->ready);
	while (!__atomic_load_n(&rivalry->stop, __ATOMIC_RELAXED)) {
		call_rcu(&head, nothing);
		rcu_barrier();
		rivalry->barriers++;
	}
	rcu_unregister_thread();
	return NULL;
}

/* How many grace periods, or barriers, a second there are beside each other. */
static double shared(long amount, bool barriers)
{
	struct rivalry rivalry = { .stop = false };
	uint64_t began;
	pthread_t other;
	double took;

	sem_init(&rivalry.ready, 0, 0);
	if (pthread_create(&other, NULL, call_and_wait, &rivalry))
		fail("no more threads");
	rcu_thread_offline();
	sem_wait(&rivalry.ready);
	rcu_thread_online();
	began = now_ns();
	for (long each = 0; each < amount; each++)
		synchronize_rcu();
	took = now_ns() - began;
	__atomic_store_n(&rivalry.stop, true, __ATOMIC_RELAXED);
	rcu_thread_offline();
	pthread_join(other, NULL);
	rcu_thread_online();
	return (barriers ? rivalry.barriers : amount) / took * 1e9;
}

static void shared_grace(long amount, struct figures *figures)
{
	figure(figures, shared(amount, false));
}

static void shared_barrier(long amount, struct figures *figures)
{
	figure(figures, shared(amount, true));
}

/* ---- the hash table -------------------- */

struct entry {
	struct cds_lfht_node node;
	unsigned long key;
};

#define KEYS 1000

static int is_key(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct entry, node)->key == *(const unsigned long *)key;
}

static unsigned long hash_of(unsigned long key)
{
	return key * 0x9e3779b97f4a7c15UL;
}

static struct cds_lfht *table(unsigned long buckets, int flags)
{
	struct cds_lfht *made = cds_lfht_new_flavor(buckets, 1, 0, flags, &rcu_flavor, NULL);

	if (!made)
		fail("no table");
	return made;
}

static struct entry *fill(struct cds_lfht *table, long amount)
{
	struct entry *entries = allocated(amount * sizeof *entries);

	for (long each = 0; each < amount; each++) {
		entries[each].key = each;
		cds_lfht_node_init(&entries[each].node);
	}
	for (long each = 0; each < amount; each++) {
		rcu_read_lock();
		cds_lfht_add(table, hash_of(each), &entries[each].node);
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	return entries;
}

static void empty(struct cds_lfht *table, struct entry *entries, long amount)
{
	for (long each = 0; each < amount; each++) {
		rcu_read_lock();
		if (cds_lfht_del(table, &entries[each].node))
			fail("a node is missing");
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	rcu_thread_offline();
	synchronize_rcu();
	if (cds_lfht_destroy(table, NULL))
		fail("the table is not empty");
	rcu_thread_online();
	free(entries);
}

static void lfht_lookup(long amount, struct figures *figures)
{
	struct cds_lfht *full = table(2048, 0);
	struct entry *entries = fill(full, KEYS);
	unsigned long state = 1;
	uint64_t began = now_ns();

	for (long each = 0; each < amount; each++) {
		struct cds_lfht_iter iterator;
		unsigned long key = (state >> 33) % KEYS;

		state = state * 6364136223846793005UL + 1442695040888963407UL;
		rcu_read_lock();
		cds_lfht_lookup(full, hash_of(key), is_key, &key, &iterator);
		if (!cds_lfht_iter_get_node(&iterator))
			fail("a key is missing");
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	figure(figures, amount * 1e9 / (now_ns() - began));
	empty(full, entries, KEYS);
}

static void lfht_insert(long amount, struct figures *figures)
{
	struct cds_lfht *growing = table(1, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING);
	uint64_t began = now_ns();
	struct entry *entries = fill(growing, amount);

	figure(figures, amount * 1e9 / (now_ns() - began));
	empty(growing, entries, amount);
}

/* ------------------------------------------------------------ */

static const struct {
	const char *name;
	void (*measure)(long amount, struct figures *figures);
} MEASUREMENTS[] = {
	{ "pair-inlined", pair_inlined },
	{ "pair-exported", pair_exported },
	{ "grace-alone", grace_alone },
	{ "grace-busy", grace_busy },
	{ "grace-idle", grace_idle },
	{ "grace-sections", grace_sections },
	{ "call-update", call_update },
	{ "defer-update", defer_update },
	{ "call-barrier", call_barrier },
	{ "shared-grace", shared_grace },
	{ "shared-barrier", shared_barrier },
	{ "lfht-lookup", lfht_lookup },
	{ "lfht-insert", lfht_insert },
	{ "flood", flood },
	{ "flood-few", flood_few },
	{ "no-flood", no_flood },
};

/* Which libraries this process has, of either kind: from the kernel, for it may be any file of their names. */
static void say_libraries(void)
{
	char line[4096 + 128], last[4096 + 128] = "";
	FILE *maps = fopen("/proc/self/maps", "r");

	if (!maps)
		fail("/proc/self/maps cannot be read");
	while (fgets(line, sizeof line, maps)) {
		char *path = strchr(line, '/');

		if (!path || (!strstr(path, "/liburcu") && !strstr(path, "/libquiescence")) || !strcmp(path, last))
			continue;
		strcpy(last, path);
		fputs(path, stdout);
	}
	fclose(maps);
}

int main(int count, char **arguments)
{
	struct figures figures = { .count = 0 };

	if (count != 3)
		fail("which measurement, and how much of it?");
	say_libraries();
	rcu_register_thread();
	for (size_t each = 0; each < sizeof MEASUREMENTS / sizeof *MEASUREMENTS; each++) {
		if (!strcmp(MEASUREMENTS[each].name, arguments[1]))
			MEASUREMENTS[each].measure(atol(arguments[2]), &figures);
	}
	if (!figures.count)
		fail("no such measurement");
	for (int each = 0; each < figures.count; each++)
		printf("%s%.17g", each ? " " : "", figures.values[each]);
	printf("\n");
	fflush(stdout);
	/* No thread is waited for: after a flood that would take as long as the flood. */
	_exit(0);
}
