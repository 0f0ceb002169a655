/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * compat_futex_async and compat_futex_noasync, which clients with inlined readers take. The word is in memory that two
 * processes share, so a private futex does not do.
 *
 * futex ours	a waiter sleeps in the kernel, and the wake says that it woke it
 * futex stock	a waiter is through when the word has changed
 */
#include <urcu/futex.h>

#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

typedef int futex_function(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2,
		int32_t val3);

static void check(futex_function *call, int is_ours)
{
	int32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t waiter;

	CHECK(word != MAP_FAILED);
	/* It has changed already: no reason to wait, and no error. */
	CHECK(call(word, FUTEX_WAIT, 1, NULL, NULL, 0) == 0);
	/* Nobody is there to be woken. */
	CHECK(call(word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	errno = 0;
	CHECK(call(word, 77, 1, NULL, NULL, 0) == -1 && errno == EINVAL);

	__atomic_store_n(word, -1, __ATOMIC_SEQ_CST);
	waiter = fork();
	CHECK(waiter >= 0);
	if (waiter == 0)
		_exit(call(word, FUTEX_WAIT, -1, NULL, NULL, 0) == 0 ? 0 : 1);
	if (is_ours) {
		/* The word stays: what lets the waiter go is the wake alone. */
		while (call(word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1)
			sched_yield();
	} else {
		__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
		CHECK(call(word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	}
	CHECK(waitpid(waiter, &status, 0) == waiter);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	munmap(word, 4096);
}

int main(int argc, char **argv)
{
	int is_ours = argc == 2 && strcmp(argv[1], "ours") == 0;

	CHECK(is_ours || (argc == 2 && strcmp(argv[1], "stock") == 0));
	check(compat_futex_async, is_ours);
	check(compat_futex_noasync, is_ours);
	puts("ok");
	return 0;
}
