/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The futexes of <urcu/futex.h>, and those that every one of the libraries exports for machines without the system
 * call. Linked with one library at a time, for each has its own.
 */
#include "check.h"
#include <urcu/futex.h>

struct sleeper {
	int32_t futex;
	pid_t tid;
	int done;
	int noasync;
};

static void *sleeps(void *argument)
{
	struct sleeper *sleeper = argument;

	__atomic_store_n(&sleeper->tid, thread_id(), __ATOMIC_SEQ_CST);
	while (__atomic_load_n(&sleeper->futex, __ATOMIC_SEQ_CST) == -1) {
		if (sleeper->noasync)
			(void)compat_futex_noasync(&sleeper->futex, FUTEX_WAIT, -1, NULL, NULL, 0);
		else
			(void)compat_futex_async(&sleeper->futex, FUTEX_WAIT, -1, NULL, NULL, 0);
	}
	flag_set(&sleeper->done);
	return NULL;
}

/* The futexes of machines that have none: a wait that comes too late does not sleep, a wake ends one that does. */
static void waits_and_wakes(void)
{
	for (int noasync = 0; noasync < 2; noasync++) {
		struct sleeper sleeper = { .futex = -1, .noasync = noasync };
		pthread_t thread = thread_start(sleeps, &sleeper);

		await_asleep(&sleeper.tid, &sleeper.done);
		CHECK(!flag_is_set(&sleeper.done));
		__atomic_store_n(&sleeper.futex, 0, __ATOMIC_SEQ_CST);
		if (noasync)
			CHECK(compat_futex_noasync(&sleeper.futex, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
		else
			CHECK(compat_futex_async(&sleeper.futex, FUTEX_WAKE, 1, NULL, NULL, 0) >= 0);
		thread_end(thread);
		(void)compat_futex_noasync(&sleeper.futex, FUTEX_WAIT, -1, NULL, NULL, 0);
		(void)compat_futex_async(&sleeper.futex, FUTEX_WAIT, -1, NULL, NULL, 0);
		errno = 0;
		CHECK_EQUAL(compat_futex_async(&sleeper.futex, 1000, 0, NULL, NULL, 0), -1);
		CHECK_EQUAL(errno, EINVAL);
		errno = 0;
		CHECK_EQUAL(compat_futex_noasync(&sleeper.futex, 1000, 0, NULL, NULL, 0), -1);
		CHECK_EQUAL(errno, EINVAL);
	}
	/* And the real ones. */
	int32_t word = 1;
	CHECK_EQUAL(futex_noasync(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	CHECK_EQUAL(futex_async(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	errno = 0;
	CHECK_EQUAL(futex_async(&word, FUTEX_WAIT, 0, NULL, NULL, 0), -1);
	CHECK_EQUAL(errno, EWOULDBLOCK);
}

CASES(
	CASE(waits_and_wakes),
)
