/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Barriers, for every CPU: what its own header has not said already, said in terms of the
 * compiler's fences.
 *
 *	cmm_mb, cmm_rmb, cmm_wmb		full, loads, stores; of devices' memory as well
 *	cmm_smp_mb, cmm_smp_rmb, cmm_smp_wmb	the same among CPUs, in ordinary memory
 *	cmm_mc, cmm_rmc, cmm_wmc (and smp)	where caches are not coherent. All of ours are
 */
#ifndef _URCU_ARCH_GENERIC_H
#define _URCU_ARCH_GENERIC_H

#include <stdint.h>
#include <urcu/compiler.h>
#include <urcu/config.h>
#include <urcu/syscall-compat.h>

/*
 * What is kept apart to keep two CPUs from taking a line from each other. Two lines: they are
 * fetched in pairs.
 */
#ifndef CAA_CACHE_LINE_SIZE
#define CAA_CACHE_LINE_SIZE	128
#endif

#ifndef cmm_mb
#define cmm_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#ifndef cmm_rmb
#define cmm_rmb()	cmm_mb()
#endif
#ifndef cmm_wmb
#define cmm_wmb()	cmm_mb()
#endif

#ifndef cmm_smp_mb
#define cmm_smp_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#ifndef cmm_smp_rmb
#define cmm_smp_rmb()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif
/* A release fence orders earlier loads too: there is no weaker one to ask for. */
#ifndef cmm_smp_wmb
#define cmm_smp_wmb()	__atomic_thread_fence(__ATOMIC_RELEASE)
#endif

#define CONFIG_HAVE_MEM_COHERENCY
#define cmm_mc()	cmm_barrier()
#define cmm_rmc()	cmm_barrier()
#define cmm_wmc()	cmm_barrier()
#define cmm_smp_mc()	cmm_barrier()
#define cmm_smp_rmc()	cmm_barrier()
#define cmm_smp_wmc()	cmm_barrier()

/* For CPUs that do not even keep dependent loads in order. None of ours is one. */
#define cmm_read_barrier_depends()	do { } while (0)
#define cmm_smp_read_barrier_depends()	do { } while (0)

/* In a loop that waits for another CPU. */
#ifndef caa_cpu_relax
#define caa_cpu_relax()	cmm_barrier()
#endif

/* A clock that is cheap to read and never goes back on one CPU, in units of its own. */
typedef uint64_t caa_cycles_t;

#ifndef HAS_CAA_GET_CYCLES
#include <time.h>

#ifdef CLOCK_MONOTONIC
#define HAS_CAA_GET_CYCLES

static __inline__ caa_cycles_t caa_get_cycles(void)
{
	struct timespec __now;

	if (clock_gettime(CLOCK_MONOTONIC, &__now) != 0)
		return 0;
	return (caa_cycles_t) __now.tv_sec * 1000000000U + (caa_cycles_t) __now.tv_nsec;
}
#endif
#endif

#endif
