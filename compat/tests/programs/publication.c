/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Publishing: pointers that readers follow, by exported functions and macros alike, and the atomic operations of
 * <urcu/uatomic.h> beside others. (What each of them answers is in headers/atomics.c.)
 */
#include "flavor.h"
#include <urcu/pointer.h>
#include <urcu/uatomic.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/system.h>

struct thing {
	long first, second;
};

CASE(pointers)
{
	struct thing one = { 1, 2 }, two = { 3, 4 }, three = { 5, 6 };
	struct thing *shared = NULL, *found;

	CHECK(rcu_dereference(shared) == NULL);
	rcu_assign_pointer(shared, &one);
	CHECK(rcu_dereference(shared) == &one);
	rcu_set_pointer(&shared, &two);
	CHECK(rcu_dereference(shared) == &two);
	CHECK(rcu_xchg_pointer(&shared, &three) == &two);
	CHECK(shared == &three);
	/* Inlined by the headers of 0.15 it is a statement, with a semicolon of its own. */
	found = rcu_cmpxchg_pointer(&shared, &one, &two);
	CHECK(found == &three);
	CHECK(shared == &three);
	found = rcu_cmpxchg_pointer(&shared, &three, &two);
	CHECK(found == &three);
	CHECK(shared == &two);
	rcu_assign_pointer(shared, NULL);
	CHECK(rcu_dereference(shared) == NULL);
}

/* What the macros call where nothing is inlined; set_pointer answers what was set, for old programs' sake. */
#ifdef _LGPL_SOURCE
extern void *rcu_dereference_sym(void *p);
extern void *rcu_set_pointer_sym(void **p, void *v);
extern void *rcu_xchg_pointer_sym(void **p, void *v);
extern void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *_new);
#endif

CASE(pointer_functions)
{
	int one, two;
	void *shared = NULL;

	CHECK(rcu_set_pointer_sym(&shared, &one) == &one);
	CHECK(shared == &one);
	CHECK(rcu_dereference_sym(shared) == &one);
	CHECK(rcu_xchg_pointer_sym(&shared, &two) == &one);
	CHECK(shared == &two);
	CHECK(rcu_cmpxchg_pointer_sym(&shared, &one, NULL) == &two);
	CHECK(shared == &two);
	CHECK(rcu_cmpxchg_pointer_sym(&shared, &two, &one) == &two);
	CHECK(shared == &one);
#if IS_BP && !defined(_LGPL_SOURCE)
	int three;

	CHECK(urcu_bp_set_pointer_sym(&shared, &two) == &two);
	CHECK(urcu_bp_dereference_sym(shared) == &two);
	CHECK(urcu_bp_xchg_pointer_sym(&shared, &three) == &two);
	CHECK(urcu_bp_cmpxchg_pointer_sym(&shared, &two, &one) == &three);
	CHECK(urcu_bp_cmpxchg_pointer_sym(&shared, &three, &one) == &three);
	CHECK(shared == &one);
#endif
}

struct message {
	struct thing *current;
	int stop;
	long seen;
};

static void receives(void *argument)
{
	struct message *message = argument;
	long last = 0;

	while (!flag_is_set(&message->stop)) {
		section_begin();
		struct thing *thing = rcu_dereference(message->current);
		if (thing) {
			/* What was written before the publication is there. */
			CHECK_EQUAL(thing->second, -thing->first);
			CHECK(thing->first >= last);
			last = thing->first;
		}
		section_end();
	}
	message->seen = last;
}

CASE(what_was_written_before_is_seen)
{
	enum { COUNT = 20000 };
	struct thing *things = malloc(COUNT * sizeof(*things));
	struct message message = { 0 };
	pthread_t thread = reader_start(receives, &message);

	CHECK(things != NULL);
	for (long i = 0; i < COUNT; i++) {
		things[i].first = i + 1;
		things[i].second = -(i + 1);
		rcu_assign_pointer(message.current, &things[i]);
	}
	flag_set(&message.stop);
	thread_end(thread);
	CHECK(message.seen <= COUNT);
	free(things);
}

struct counters {
	long added;
	unsigned int swapped;
	unsigned char byte;
	unsigned long bits;
};

static void *counts(void *argument)
{
	struct counters *counters = argument;

	for (int i = 0; i < 20000; i++) {
		uatomic_add(&counters->added, 3);
		uatomic_dec(&counters->added);
		unsigned int old = uatomic_read(&counters->swapped);

		for (;;) {
			unsigned int now = uatomic_cmpxchg(&counters->swapped, old, old + 1);

			if (now == old)
				break;
			old = now;
		}
#ifdef UATOMIC_HAS_ATOMIC_BYTE
		uatomic_inc(&counters->byte);
#endif
	}
	return NULL;
}

CASE(atomically)
{
	enum { THREADS = 3 };
	struct counters counters = { 0 };
	pthread_t threads[THREADS];

	for (int i = 0; i < THREADS; i++)
		threads[i] = thread_start(counts, &counters);
	for (int i = 0; i < THREADS; i++)
		thread_end(threads[i]);
	CHECK_EQUAL(counters.added, THREADS * 20000 * 2);
	CHECK_EQUAL(counters.swapped, THREADS * 20000);
#ifdef UATOMIC_HAS_ATOMIC_BYTE
	CHECK_EQUAL(counters.byte, (unsigned char)(THREADS * 20000));
#endif
}

/*
 * Dekker's two flags: with a full fence between, one of the two sees the other. Without it, few
 * runs would fail; that there is one is seen in the assembly, by tests/c/headers/readers.rs.
 */
struct dekker {
	int flags[2];
	int saw[2];
	int round[2];
	int me;
	struct dekker *shared;
};

static void *dekker_run(void *argument)
{
	struct dekker *dekker = argument;
	struct dekker *shared = dekker->shared;

	for (int round = 1; round <= 500; round++) {
		CMM_STORE_SHARED(shared->flags[dekker->me], round);
		cmm_smp_mb();
		shared->saw[dekker->me] = CMM_LOAD_SHARED(shared->flags[!dekker->me]) >= round;
		__atomic_store_n(&shared->round[dekker->me], round, __ATOMIC_SEQ_CST);
		WAIT_UNTIL(__atomic_load_n(&shared->round[!dekker->me], __ATOMIC_SEQ_CST) >= round);
		CHECK(shared->saw[0] || shared->saw[1]);
		/* Both have looked before either continues. */
		__atomic_add_fetch(&shared->me, 1, __ATOMIC_SEQ_CST);
		WAIT_UNTIL(__atomic_load_n(&shared->me, __ATOMIC_SEQ_CST) >= 2 * round);
	}
	return NULL;
}

CASE(fences)
{
	struct dekker shared = { 0 };
	struct dekker threads[2] = { { .me = 0, .shared = &shared }, { .me = 1, .shared = &shared } };
	pthread_t first = thread_start(dekker_run, &threads[0]), second = thread_start(dekker_run, &threads[1]);

	thread_end(first);
	thread_end(second);
	/* That they are there, and statements. */
	cmm_barrier();
	cmm_mb();
	cmm_rmb();
	cmm_wmb();
	cmm_smp_rmb();
	cmm_smp_wmb();
	cmm_smp_read_barrier_depends();
	caa_cpu_relax();
	CHECK(caa_get_cycles() != 0 || caa_get_cycles() != 0);
}

CASE(small_things)
{
	struct thing thing;
	int array[7];

	CHECK(caa_container_of(&thing.second, struct thing, second) == &thing);
	CHECK_EQUAL(caa_max(3, 4), 4);
	CHECK_EQUAL(caa_min(3, 4), 3);
	CHECK(caa_likely(1) && !caa_unlikely(0));
	CHECK_EQUAL(CAA_ARRAY_SIZE(array), 7);
	CHECK_EQUAL(CAA_BITS_PER_LONG, 8 * sizeof(long));
	CHECK(caa_is_signed_type(int) && !caa_is_signed_type(unsigned int));
	CHECK_EQUAL(caa_cast_long_keep_sign((int)-1), -1);
	CHECK(CAA_CACHE_LINE_SIZE >= 32);
	CMM_ACCESS_ONCE(array[0]) = 3;
	CHECK_EQUAL(CMM_LOAD_SHARED(array[0]), 3);
}
