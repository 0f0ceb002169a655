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
 * How far apart things have to lie to keep two CPUs from taking a cache line from each other, in
 * bytes. Two lines: they are fetched in pairs.
 */
#ifndef CAA_CACHE_LINE_SIZE
#define CAA_CACHE_LINE_SIZE	128
#endif

/* Full fence; fence for loads; fence for stores. Of devices' memory as well. */
#ifndef cmm_mb
#define cmm_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#ifndef cmm_rmb
#define cmm_rmb()	cmm_mb()
#endif
#ifndef cmm_wmb
#define cmm_wmb()	cmm_mb()
#endif

/* The same among CPUs, in ordinary memory. */
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

/*
 * The fence that operations on queues and stacks were documented to have up to liburcu 0.14, where
 * CONFIG_RCU_EMIT_LEGACY_MB says that they have it still.
 */
#ifdef CONFIG_RCU_EMIT_LEGACY_MB
#define cmm_emit_legacy_smp_mb()	cmm_smp_mb()
#else
#define cmm_emit_legacy_smp_mb()	do { } while (0)
#endif

/* Have a CPU whose cache is not coherent look, and write, again. All of ours are coherent. */
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

/* The time of a clock that is cheap to read and never goes back on one CPU, in units of its own. */
typedef uint64_t caa_cycles_t;

#ifndef HAS_CAA_GET_CYCLES
#include <time.h>

#ifdef CLOCK_MONOTONIC
#define HAS_CAA_GET_CYCLES

/* Reads that clock; 0 if there is none. Does not block. */
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
