/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What clients with inlined readers call where the kernel has no futex: every library has these symbols. Linux always
 * has it, so the two functions are the system call, with the one difference that a waiter learns nothing from a word
 * that had changed before: it answers 0, as after a wake.
 *
 * The futex is not private: callers may wake one in shared memory.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As linux/futex.h numbers them. */
enum {
	OPERATION_WAIT = 0,
	OPERATION_WAKE = 1,
};

int compat_futex_async(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2,
		int32_t val3);
int compat_futex_noasync(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2,
		int32_t val3);

/* Two words that liburcu's libraries share between them. Nothing here needs them; they are in the interface. */
__attribute__((weak)) pthread_mutex_t __urcu_compat_futex_lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((weak)) pthread_cond_t __urcu_compat_futex_cond = PTHREAD_COND_INITIALIZER;

#if defined(__x86_64__)
_Static_assert(sizeof(pthread_mutex_t) == 40 && sizeof(pthread_cond_t) == 48, "in the interface");
#endif

static int futex_wait_or_wake(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout)
{
	long answer;

	if (op != OPERATION_WAIT && op != OPERATION_WAKE) {
		errno = EINVAL;
		return -1;
	}
	answer = syscall(SYS_futex, uaddr, op, val, timeout, NULL, 0);
	if (answer == -1 && op == OPERATION_WAIT && errno == EAGAIN)
		return 0;
	return (int)answer;
}

/* Callable from signal handlers. */
int compat_futex_async(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2,
		int32_t val3)
{
	(void)uaddr2;
	(void)val3;
	return futex_wait_or_wake(uaddr, op, val, timeout);
}

int compat_futex_noasync(int32_t *uaddr, int op, int32_t val, const struct timespec *timeout, int32_t *uaddr2,
		int32_t val3)
{
	(void)uaddr2;
	(void)val3;
	return futex_wait_or_wake(uaddr, op, val, timeout);
}
