/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The futexes of <urcu/futex.h>, and those that every one of the libraries exports for machines
 * without the system call. Linked with one library at a time, for each has its own. The word of
 * compat_futex_async may be in memory that two processes share: a private futex does not do.
 */
#include "check.h"
#include <sys/mman.h>
#include <urcu/futex.h>

typedef int futex_function(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout,
		int32_t *uaddr2, int32_t val3);

static void what_does_not_wait(futex_function *call)
{
	int32_t word = 0;

	/* It has changed already: no reason to wait, and no error. */
	CHECK_EQUAL(call(&word, FUTEX_WAIT, 1, NULL, NULL, 0), 0);
	/* No thread is there to be woken. */
	CHECK_EQUAL(call(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	errno = 0;
	CHECK_EQUAL(call(&word, 1000, 0, NULL, NULL, 0), -1);
	CHECK_EQUAL(errno, EINVAL);
}

/*
 * Ours sleep in the kernel: what lets the waiter go is the wake alone, which says so. liburcu's
 * look at the word.
 */
static void let_go(futex_function *call, int32_t *word)
{
	if (!is_liburcu("0.13") && !is_liburcu("0.15")) {
		WAIT_UNTIL(call(word, FUTEX_WAKE, 1, NULL, NULL, 0) == 1);
	} else {
		__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
		CHECK_EQUAL(call(word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	}
}

struct sleeper {
	futex_function *call;
	int32_t word;
	pid_t tid;
	int done;
};

static void *sleeps(void *argument)
{
	struct sleeper *sleeper = argument;

	__atomic_store_n(&sleeper->tid, thread_id(), __ATOMIC_SEQ_CST);
	CHECK_EQUAL(sleeper->call(&sleeper->word, FUTEX_WAIT, -1, NULL, NULL, 0), 0);
	flag_set(&sleeper->done);
	return NULL;
}

static void between_threads(futex_function *call)
{
	struct sleeper sleeper = { .call = call, .word = -1 };
	pthread_t thread = thread_start(sleeps, &sleeper);

	what_does_not_wait(call);
	await_asleep(&sleeper.tid, &sleeper.done);
	CHECK(!flag_is_set(&sleeper.done));
	let_go(call, &sleeper.word);
	thread_end(thread);
}

CASE(async_between_threads)
{
	between_threads(compat_futex_async);
}

CASE(noasync_between_threads)
{
	between_threads(compat_futex_noasync);
}

CASE(async_between_processes)
{
	int32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(word != MAP_FAILED);
	__atomic_store_n(word, -1, __ATOMIC_SEQ_CST);
	pid_t waiter = fork();
	CHECK(waiter >= 0);
	if (waiter == 0)
		_exit(compat_futex_async(word, FUTEX_WAIT, -1, NULL, NULL, 0) != 0);
	let_go(compat_futex_async, word);
	child_ended_well(waiter);
	munmap(word, 4096);
}

CASE(of_the_system)
{
	int32_t word = 1;

	CHECK_EQUAL(futex_noasync(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	CHECK_EQUAL(futex_async(&word, FUTEX_WAKE, 1, NULL, NULL, 0), 0);
	errno = 0;
	CHECK_EQUAL(futex_async(&word, FUTEX_WAIT, 0, NULL, NULL, 0), -1);
	CHECK_EQUAL(errno, EWOULDBLOCK);
}
