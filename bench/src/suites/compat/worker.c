/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A C program against Debian's liburcu, readers inlined, which is started with that library and with ours: both
 * sides of `rcu bench compat` run the same instructions up to the library's door. It is compiled once for each flavour.
 *
 * It reads lines "MEASUREMENT AMOUNT" and answers each with a line of one number: nanoseconds, or operations a second.
 * Its first line says where the library was loaded from, and its second where the core is that ours has and Debian's has
 * not, or "none".
 */
#define _GNU_SOURCE
#define _LGPL_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#if defined(FLAVOR_MEMB)
#include <urcu/urcu-memb.h>
#include <urcu/map/urcu-memb.h>
#define PREFIX "urcu_memb_"
#elif defined(FLAVOR_MB)
#include <urcu/urcu-mb.h>
#include <urcu/map/urcu-mb.h>
#define PREFIX "urcu_mb_"
#elif defined(FLAVOR_QSBR)
#include <urcu/urcu-qsbr.h>
#include <urcu/map/urcu-qsbr.h>
#define PREFIX "urcu_qsbr_"
#elif defined(FLAVOR_BP)
#include <urcu/urcu-bp.h>
#include <urcu/map/urcu-bp.h>
#define PREFIX "urcu_bp_"
#else
#error "compile with -DFLAVOR_MEMB, _MB, _QSBR or _BP"
#endif
#include <urcu/rculfhash.h>

static void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

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

/* ---- readers ------------------------------------------------------------------------------------------- */

static double pair_inlined(long amount)
{
	uint64_t began = now_ns();

	for (long each = 0; each < amount; each++) {
		rcu_read_lock();
		__asm__ volatile("" : : : "memory");
		rcu_read_unlock();
		rcu_quiescent_state();
	}
	return (double)(now_ns() - began) / amount;
}

static void *symbol(const char *name)
{
	void *found = dlsym(RTLD_DEFAULT, name);

	if (!found)
		fail(dlerror());
	return found;
}

static double pair_exported(long amount)
{
	void (*lock)(void) = (void (*)(void))symbol(PREFIX "read_lock");
	void (*unlock)(void) = (void (*)(void))symbol(PREFIX "read_unlock");
	uint64_t began = now_ns();

	for (long each = 0; each < amount; each++) {
		lock();
		unlock();
	}
	return (double)(now_ns() - began) / amount;
}

/* ---- grace periods --------------------------------------------------------------------------------------- */

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

static double grace_periods(long amount, int threads, bool reads, long section_ns)
{
	struct others others = { .count = threads, .reads = reads, .section_ns = section_ns };
	uint64_t *all = allocated(amount * sizeof *all);
	double median;

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
	for (long each = 0; each < amount; each++) {
		uint64_t began = now_ns();

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
	median = median_of(all, amount);
	free(others.threads);
	free(all);
	return median;
}

static double grace_alone(long amount)
{
	return grace_periods(amount, 0, false, 0);
}

static double grace_busy(long amount)
{
	return grace_periods(amount, 1, true, 0);
}

static double grace_idle(long amount)
{
	return grace_periods(amount, 1000, false, 0);
}

static double grace_sections(long amount)
{
	return grace_periods(amount, 1, true, 100000);
}

/* ---- callbacks ------------------------------------------------------------------------------------------- */

struct object {
	struct rcu_head head;
	long payload[4];
};

static void nothing(struct rcu_head *head)
{
	((struct object *)head)->payload[0]++;
}

static void enqueue(struct object *objects, long amount)
{
	for (long each = 0; each < amount; each++)
		call_rcu(&objects[each].head, nothing);
}

static double call_enqueue(long amount)
{
	struct object *objects = allocated(amount * sizeof *objects);
	uint64_t began, ended;

	memset(objects, 1, amount * sizeof *objects);
	began = now_ns();
	enqueue(objects, amount);
	ended = now_ns();
	rcu_barrier();
	free(objects);
	return (double)(ended - began) / amount;
}

static double call_whole(long amount)
{
	struct object *objects = allocated(amount * sizeof *objects);
	uint64_t began;
	double took;

	memset(objects, 1, amount * sizeof *objects);
	began = now_ns();
	enqueue(objects, amount);
	rcu_barrier();
	took = now_ns() - began;
	free(objects);
	return amount / took * 1e9;
}

static double call_barrier(long amount)
{
	uint64_t *all = allocated(amount * sizeof *all);
	struct object object;
	double median;

	for (long each = 0; each < amount; each++) {
		uint64_t began;

		call_rcu(&object.head, nothing);
		began = now_ns();
		rcu_barrier();
		all[each] = now_ns() - began;
	}
	median = median_of(all, amount);
	free(all);
	return median;
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
	struct object object;

	rcu_register_thread();
	sem_post(&rivalry->ready);
	while (!__atomic_load_n(&rivalry->stop, __ATOMIC_RELAXED)) {
		call_rcu(&object.head, nothing);
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

static double shared_grace(long amount)
{
	return shared(amount, false);
}

static double shared_barrier(long amount)
{
	return shared(amount, true);
}

static void count_one(void *count)
{
	++*(long *)count;
}

static double defer_whole(long amount)
{
	static long count;
	static bool registered; /* for good: Debian's library fails where it is done twice */
	uint64_t began;
	double took;

	if (!registered && rcu_defer_register_thread())
		fail("cannot register to defer");
	registered = true;
	began = now_ns();
	for (long each = 0; each < amount; each++)
		defer_rcu(count_one, &count);
	rcu_defer_barrier();
	took = now_ns() - began;
	return amount / took * 1e9;
}

/* ---- the hash table ---------------------------------------------------------------------------------------- */

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

static double lfht_lookup(long amount)
{
	struct cds_lfht *full = table(2048, 0);
	struct entry *entries = fill(full, KEYS);
	unsigned long state = 1;
	uint64_t began = now_ns();
	double took;

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
	took = now_ns() - began;
	empty(full, entries, KEYS);
	return amount / took * 1e9;
}

static double lfht_insert(long amount)
{
	struct cds_lfht *growing = table(1, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING);
	uint64_t began = now_ns();
	struct entry *entries = fill(growing, amount);
	double took = now_ns() - began;

	empty(growing, entries, amount);
	return amount / took * 1e9;
}

/* ------------------------------------------------------------------------------------------------------------ */

static const struct {
	const char *name;
	double (*measure)(long amount);
} MEASUREMENTS[] = {
	{ "pair-inlined", pair_inlined },
	{ "pair-exported", pair_exported },
	{ "grace-alone", grace_alone },
	{ "grace-busy", grace_busy },
	{ "grace-idle", grace_idle },
	{ "grace-sections", grace_sections },
	{ "call-enqueue", call_enqueue },
	{ "call-whole", call_whole },
	{ "call-barrier", call_barrier },
	{ "shared-grace", shared_grace },
	{ "shared-barrier", shared_barrier },
	{ "defer-whole", defer_whole },
	{ "lfht-lookup", lfht_lookup },
	{ "lfht-insert", lfht_insert },
};

static double measured(const char *name, long amount)
{
	for (size_t each = 0; each < sizeof MEASUREMENTS / sizeof *MEASUREMENTS; each++) {
		if (!strcmp(MEASUREMENTS[each].name, name))
			return MEASUREMENTS[each].measure(amount);
	}
	fail("no such measurement");
	return 0;
}

int main(void)
{
	char name[64];
	long amount;
	Dl_info where;
	void *found;

	if (!dladdr(symbol(PREFIX "synchronize_rcu"), &where))
		fail("the library cannot be found");
	printf("%s\n", where.dli_fname);
	/* Not by the library's path alone: it may have been installed in the system's place. */
	found = dlsym(RTLD_DEFAULT, "quiescence_urcu_synchronize");
	printf("%s\n", found && dladdr(found, &where) ? where.dli_fname : "none");
	fflush(stdout);
	rcu_register_thread();
	while (scanf("%63s %ld", name, &amount) == 2) {
		printf("%.17g\n", measured(name, amount));
		fflush(stdout);
	}
	rcu_unregister_thread();
	return 0;
}
