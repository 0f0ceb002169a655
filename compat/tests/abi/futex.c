/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * compat_futex_async and compat_futex_noasync, which clients with inlined readers take. The first one's word may be in
 * memory that two processes share, so that a private futex does not do.
 *
 * futex ours	a waiter sleeps in the kernel, and the wake says that it woke it
 * futex stock	a waiter is through when the word has changed
 */
#include <urcu/futex.h>

#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../examples/check.h"

typedef int futex_function(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2,
		int32_t val3);

static void what_does_not_wait(futex_function *call, int32_t *word)
{
	__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
	/* It has changed already: no reason to wait, and no error. */
	CHECK(call(word, FUTEX_WAIT, 1, NULL, NULL, 0) == 0);
	/* No thread is there to be woken. */
	CHECK(call(word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	errno = 0;
	CHECK(call(word, 77, 1, NULL, NULL, 0) == -1 && errno == EINVAL);
}

static void let_go(futex_function *call, int32_t *word, int is_ours)
{
	if (is_ours) {
		/* The word stays: what lets the waiter go is the wake alone. */
		while (call(word, FUTEX_WAKE, 1, NULL, NULL, 0) != 1)
			sched_yield();
	} else {
		__atomic_store_n(word, 0, __ATOMIC_SEQ_CST);
		CHECK(call(word, FUTEX_WAKE, 1, NULL, NULL, 0) == 0);
	}
}

struct waiter {
	futex_function *call;
	int32_t word;
};

static void *wait_in_thread(void *argument)
{
	struct waiter *waiter = argument;

	CHECK(waiter->call(&waiter->word, FUTEX_WAIT, -1, NULL, NULL, 0) == 0);
	return NULL;
}

static void between_threads(futex_function *call, int is_ours)
{
	struct waiter waiter = { .call = call };
	pthread_t thread;

	what_does_not_wait(call, &waiter.word);
	__atomic_store_n(&waiter.word, -1, __ATOMIC_SEQ_CST);
	CHECK(pthread_create(&thread, NULL, wait_in_thread, &waiter) == 0);
	let_go(call, &waiter.word, is_ours);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void between_processes(futex_function *call, int is_ours)
{
	int32_t *word = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	int status;
	pid_t waiter;

	CHECK(word != MAP_FAILED);
	__atomic_store_n(word, -1, __ATOMIC_SEQ_CST);
	waiter = fork();
	CHECK(waiter >= 0);
	if (waiter == 0)
		_exit(call(word, FUTEX_WAIT, -1, NULL, NULL, 0) == 0 ? 0 : 1);
	let_go(call, word, is_ours);
	CHECK(waitpid(waiter, &status, 0) == waiter);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	munmap(word, 4096);
}

int main(int argc, char **argv)
{
	int is_ours = argc == 2 && strcmp(argv[1], "ours") == 0;

	CHECK(is_ours || (argc == 2 && strcmp(argv[1], "stock") == 0));
	between_threads(compat_futex_async, is_ours);
	between_threads(compat_futex_noasync, is_ours);
	between_processes(compat_futex_async, is_ours);
	puts("ok");
	return 0;
}
