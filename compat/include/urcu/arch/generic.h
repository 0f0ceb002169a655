/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Memory barriers for every CPU. Those that the CPU's own header does not define are the compiler's
 * fences.
 *
 *	cmm_mb, cmm_rmb, cmm_wmb		full, loads, stores; also for device memory
 *	cmm_smp_mb, cmm_smp_rmb, cmm_smp_wmb	the same between CPUs, for ordinary memory
 *	cmm_mc, cmm_rmc, cmm_wmc (and smp)	for CPUs whose caches are not coherent
 */
#ifndef _URCU_ARCH_GENERIC_H
#define _URCU_ARCH_GENERIC_H

#include <stdint.h>
#include <urcu/compiler.h>
#include <urcu/config.h>
#include <urcu/syscall-compat.h>

/*
 * The distance in bytes at which two CPUs do not contend for a cache line: two lines, since CPUs
 * fetch them in pairs.
 */
#ifndef CAA_CACHE_LINE_SIZE
#define CAA_CACHE_LINE_SIZE	128
#endif

/* Full barrier; barrier for loads; barrier for stores. Also for device memory. */
#ifndef cmm_mb
#define cmm_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#ifndef cmm_rmb
#define cmm_rmb()	cmm_mb()
#endif
#ifndef cmm_wmb
#define cmm_wmb()	cmm_mb()
#endif

/* The same between CPUs, for ordinary memory. */
#ifndef cmm_smp_mb
#define cmm_smp_mb()	__atomic_thread_fence(__ATOMIC_SEQ_CST)
#endif
#ifndef cmm_smp_rmb
#define cmm_smp_rmb()	__atomic_thread_fence(__ATOMIC_ACQUIRE)
#endif
/* A release fence also orders earlier loads: the compiler has no weaker one. */
#ifndef cmm_smp_wmb
#define cmm_smp_wmb()	__atomic_thread_fence(__ATOMIC_RELEASE)
#endif

/*
 * The full fence that queue and stack operations were documented to have up to liburcu 0.14. They
 * still have it if CONFIG_RCU_EMIT_LEGACY_MB is defined.
 */
#ifdef CONFIG_RCU_EMIT_LEGACY_MB
#define cmm_emit_legacy_smp_mb()	cmm_smp_mb()
#else
#define cmm_emit_legacy_smp_mb()	do { } while (0)
#endif

/* For CPUs whose caches are not coherent: reload, write back. No supported CPU is one. */
#define CONFIG_HAVE_MEM_COHERENCY
#define cmm_mc()	cmm_barrier()
#define cmm_rmc()	cmm_barrier()
#define cmm_wmc()	cmm_barrier()
#define cmm_smp_mc()	cmm_barrier()
#define cmm_smp_rmc()	cmm_barrier()
#define cmm_smp_wmc()	cmm_barrier()

/* For CPUs that reorder even dependent loads. No supported CPU does. */
#define cmm_read_barrier_depends()	do { } while (0)
#define cmm_smp_read_barrier_depends()	do { } while (0)

/* For the body of a loop that waits for another CPU. */
#ifndef caa_cpu_relax
#define caa_cpu_relax()	cmm_barrier()
#endif

/* A time stamp in the clock's own unit. It is cheap to read, and never goes back on one CPU. */
typedef uint64_t caa_cycles_t;

#ifndef HAS_CAA_GET_CYCLES
#include <time.h>

#ifdef CLOCK_MONOTONIC
#define HAS_CAA_GET_CYCLES

/* Returns the time in nanoseconds, or 0 if the clock cannot be read. Does not block. */
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
