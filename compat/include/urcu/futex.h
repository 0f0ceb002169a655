/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sleeping until a word changes, and waking the sleepers: Linux' futex, not private to the process.
 */
#ifndef _URCU_FUTEX_H
#define _URCU_FUTEX_H

#include <errno.h>
#include <stdint.h>
#include <time.h>
#include <unistd.h>
#include <urcu/arch.h>
#include <urcu/assert.h>
#include <urcu/compiler.h>
#include <urcu/config.h>
#include <urcu/syscall-compat.h>

#define CONFIG_RCU_HAVE_FUTEX 1

#ifndef FUTEX_WAIT
#define FUTEX_WAIT	0
#endif
#ifndef FUTEX_WAKE
#define FUTEX_WAKE	1
#endif

#ifdef __cplusplus
extern "C" {
#else
/* <unistd.h> declares it for programs that ask for more than ISO C only. */
extern long int syscall(long int __number, ...);
#endif

struct timespec;

/*
 * Operations FUTEX_WAIT and FUTEX_WAKE. Each library of ours has the two functions; programs
 * compiled for liburcu call them where the kernel has no futex.
 */
extern int compat_futex_noasync(int32_t *uaddr, int op, int32_t val,
		const struct timespec *timeout, int32_t *uaddr2, int32_t val3);
extern int compat_futex_async(int32_t *uaddr, int op, int32_t val,
		const struct timespec *timeout, int32_t *uaddr2, int32_t val3);

/* The system call. Returns what it does: -1 with errno set, or what the operation says. */
static __inline__ int futex(int32_t *uaddr, int op, int32_t val,
		const struct timespec *timeout, int32_t *uaddr2, int32_t val3)
{
	return (int) syscall(__NR_futex, uaddr, op, val, timeout, uaddr2, val3);
}

/*
 * The same, also on systems without it. FUTEX_WAIT blocks. The first one is not for signal
 * handlers, the second one is.
 */
#define _URCU_FUTEX(__name, __compat)							\
	static __inline__ int __name(int32_t *uaddr, int op, int32_t val,		\
			const struct timespec *timeout, int32_t *uaddr2, int32_t val3)	\
	{										\
		int __answer = futex(uaddr, op, val, timeout, uaddr2, val3);		\
											\
		if (caa_unlikely(__answer < 0 && errno == ENOSYS))			\
			return __compat(uaddr, op, val, timeout, uaddr2, val3);		\
		return __answer;							\
	}

_URCU_FUTEX(futex_noasync, compat_futex_noasync)
_URCU_FUTEX(futex_async, compat_futex_async)
#undef _URCU_FUTEX

#ifdef __cplusplus
}
#endif

#endif
