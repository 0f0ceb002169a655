/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * x86. The CPU does not reorder loads with loads, nor stores with stores; only a load may pass an
 * earlier store. So between CPUs a compiler barrier suffices, except for the full barrier.
 */
#ifndef _URCU_ARCH_X86_H
#define _URCU_ARCH_X86_H

/*
 * Fence instructions, for memory that is write-combining, or written past the caches.
 */
#if defined(__x86_64__) || defined(__SSE2__)
#define CONFIG_RCU_HAVE_FENCE 1
#define cmm_mb()	__asm__ __volatile__ ("mfence" ::: "memory")
#define cmm_rmb()	__asm__ __volatile__ ("lfence" ::: "memory")
#define cmm_wmb()	__asm__ __volatile__ ("sfence" ::: "memory")
#endif

/*
 * For ordinary memory a locked instruction is a full fence, in a third of the time of mfence. This
 * one changes no memory.
 */
#if defined(__x86_64__)
#define cmm_smp_mb()	__asm__ __volatile__ ("lock; orl $0, (%%rsp)" ::: "memory", "cc")
#else
#define cmm_smp_mb()	__asm__ __volatile__ ("lock; orl $0, (%%esp)" ::: "memory", "cc")
#endif
#define cmm_smp_rmb()	cmm_barrier()
#define cmm_smp_wmb()	cmm_barrier()

#define caa_cpu_relax()	__asm__ __volatile__ ("pause" ::: "memory")

#define HAS_CAA_GET_CYCLES
#define rdtscll(val)	((void) ((val) = __builtin_ia32_rdtsc()))

#include <urcu/arch/generic.h>

#if defined(__linux__) && !defined(__NR_membarrier)
#if defined(__x86_64__)
#define __NR_membarrier	324
#else
#define __NR_membarrier	375
#endif
#endif

/* Returns the CPU's time stamp counter. */
static __inline__ caa_cycles_t caa_get_cycles(void)
{
	return __builtin_ia32_rdtsc();
}

#endif
