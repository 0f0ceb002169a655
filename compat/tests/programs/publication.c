/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Publishing: pointers that readers follow, and the atomic operations of <urcu/uatomic.h> in all the widths that the
 * machine has. Exported functions and macros alike.
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

static void pointers(void)
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

static void pointer_functions(void)
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

static void *receives(void *argument)
{
	struct message *message = argument;
	long last = 0;

	rcu_register_thread();
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
	rcu_unregister_thread();
	return NULL;
}

static void what_was_written_before_is_seen(void)
{
	enum { COUNT = 20000 };
	struct thing *things = malloc(COUNT * sizeof(*things));
	struct message message = { 0 };
	pthread_t thread = thread_start(receives, &message);

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

/* Every operation on one type: values wrap at its width, neighbours stay as they are. */
#define OPERATIONS(name, type)								\
	static void name(void)								\
	{										\
		type cell[3] = { (type)0x55, 5, (type)0x55 };				\
		type *at = &cell[1];							\
											\
		CHECK(uatomic_read(at) == 5);						\
		uatomic_set(at, 7);							\
		CHECK(uatomic_read(at) == 7);						\
		CHECK(uatomic_xchg(at, 9) == 7);					\
		CHECK(uatomic_read(at) == 9);						\
		CHECK(uatomic_cmpxchg(at, 8, 1) == 9);					\
		CHECK(uatomic_read(at) == 9);						\
		CHECK(uatomic_cmpxchg(at, 9, 1) == 9);					\
		CHECK(uatomic_read(at) == 1);						\
		CHECK((type)uatomic_add_return(at, 41) == 42);				\
		CHECK((type)uatomic_sub_return(at, 2) == 40);				\
		cmm_smp_mb__before_uatomic_add();					\
		uatomic_add(at, 8);							\
		cmm_smp_mb__after_uatomic_add();					\
		CHECK(uatomic_read(at) == 48);						\
		cmm_smp_mb__before_uatomic_sub();					\
		uatomic_sub(at, 16);							\
		cmm_smp_mb__after_uatomic_sub();					\
		CHECK(uatomic_read(at) == 32);						\
		cmm_smp_mb__before_uatomic_inc();					\
		uatomic_inc(at);							\
		cmm_smp_mb__after_uatomic_inc();					\
		CHECK(uatomic_read(at) == 33);						\
		cmm_smp_mb__before_uatomic_dec();					\
		uatomic_dec(at);							\
		cmm_smp_mb__after_uatomic_dec();					\
		CHECK(uatomic_read(at) == 32);						\
		cmm_smp_mb__before_uatomic_or();					\
		uatomic_or(at, 15);							\
		cmm_smp_mb__after_uatomic_or();						\
		CHECK(uatomic_read(at) == 47);						\
		cmm_smp_mb__before_uatomic_and();					\
		uatomic_and(at, 44);							\
		cmm_smp_mb__after_uatomic_and();					\
		CHECK(uatomic_read(at) == 44);						\
		uatomic_set(at, (type)-1);						\
		uatomic_inc(at);							\
		CHECK(uatomic_read(at) == 0);						\
		uatomic_dec(at);							\
		CHECK(uatomic_read(at) == (type)-1);					\
		CHECK((type)uatomic_add_return(at, 2) == 1);				\
		CHECK(cell[0] == (type)0x55 && cell[2] == (type)0x55);			\
	}

OPERATIONS(operations_on_int, int)
OPERATIONS(operations_on_unsigned_int, unsigned int)
OPERATIONS(operations_on_long, long)
OPERATIONS(operations_on_unsigned_long, unsigned long)
#ifdef UATOMIC_HAS_ATOMIC_BYTE
OPERATIONS(operations_on_bytes, unsigned char)
#endif
#ifdef UATOMIC_HAS_ATOMIC_SHORT
OPERATIONS(operations_on_shorts, unsigned short)
#endif

static void pointers_too(void)
{
	int one, two;
	int *shared = &one;

	CHECK(uatomic_read(&shared) == &one);
	CHECK(uatomic_xchg(&shared, &two) == &one);
	CHECK(uatomic_cmpxchg(&shared, &one, NULL) == &two);
	CHECK(uatomic_cmpxchg(&shared, &two, &one) == &two);
	uatomic_set(&shared, NULL);
	CHECK(shared == NULL);
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

static void atomically(void)
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

static void fences(void)
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

static void small_things(void)
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

CASES(
	CASE(pointers),
	CASE(pointer_functions),
	CASE(what_was_written_before_is_seen),
	CASE(operations_on_int),
	CASE(operations_on_unsigned_int),
	CASE(operations_on_long),
	CASE(operations_on_unsigned_long),
#ifdef UATOMIC_HAS_ATOMIC_BYTE
	CASE(operations_on_bytes),
#endif
#ifdef UATOMIC_HAS_ATOMIC_SHORT
	CASE(operations_on_shorts),
#endif
	CASE(pointers_too),
	CASE(atomically),
	CASE(fences),
	CASE(small_things),
)
