/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* 64-bit ARM: the compiler's fences compile to the CPU's barriers. */
#ifndef _URCU_ARCH_AARCH64_H
#define _URCU_ARCH_AARCH64_H

#include <stdint.h>

#define caa_cpu_relax()	__asm__ __volatile__ ("yield" ::: "memory")

#define HAS_CAA_GET_CYCLES

#include <urcu/arch/generic.h>

#if defined(__linux__) && !defined(__NR_membarrier)
#define __NR_membarrier	283
#endif

/* Returns the CPU's virtual counter. */
static __inline__ caa_cycles_t caa_get_cycles(void)
{
	uint64_t __ticks;

	__asm__ __volatile__ ("mrs %0, cntvct_el0" : "=r" (__ticks));
	return __ticks;
}

#endif
