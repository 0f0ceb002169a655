/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the readers of memb, mb and signal do inside a program, and QSBR's in part: written into the
 * program when it is compiled, and so a contract between programs and libraries of any age. It is
 * the protocol of liburcu 0.13.
 *
 *	lock	word = gp.ctr, if the nesting was 0; else one more
 *	unlock	word = one less; the outermost one looks whether an updater sleeps (gp.futex is -1), and wakes it
 *
 * The low half of a reader's word counts nesting; the high half is the updaters' own. Orderings: a
 * word is always stored with release, so that what a section has read was read before the updater
 * finds that it has ended, and gp.ctr loaded with acquire. On x86 both are plain moves. What else
 * is needed between the word and the section is a fence, or, with membarrier, only the compiler's
 * silence: the updater then fences for all.
 */
#ifndef _URCU_COMMON_STATIC_H
#define _URCU_COMMON_STATIC_H

#include <pthread.h>
#include <stdint.h>
#ifdef CONFIG_RCU_FORCE_SYS_MEMBARRIER
#include <stdio.h>
#endif
#include <stdlib.h>
#include <unistd.h>
#include <urcu/annotate.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/config.h>
#include <urcu/debug.h>
#include <urcu/futex.h>
#include <urcu/list.h>
#include <urcu/system.h>
#include <urcu/tls-compat.h>
#include <urcu/uatomic.h>

#ifdef __cplusplus
extern "C" {
#endif

#define URCU_GP_COUNT		(1UL << 0)
#define URCU_GP_CTR_PHASE	(1UL << (sizeof(unsigned long) << 2))
#define URCU_GP_CTR_NEST_MASK	(URCU_GP_CTR_PHASE - 1)

/*
 * What a program that defines CONFIG_RCU_FORCE_SYS_MEMBARRIER says of all systems that it runs on
 * is looked at once, before main(): without membarrier its readers would have no fences at all.
 */
#ifdef CONFIG_RCU_FORCE_SYS_MEMBARRIER
#define _URCU_REQUIRE_SYS_MEMBARRIER(__has, __require)						\
	static void __attribute__((__constructor__)) __require(void)				\
	{											\
		if (__has)									\
			return;									\
		fprintf(stderr, "liburcu (quiescence): this program was compiled with "		\
				"CONFIG_RCU_FORCE_SYS_MEMBARRIER, and there is no "		\
				"membarrier(2) here: allow it, or compile without\n");		\
		abort();									\
	}
#endif

/*
 * A flavour's own: what its readers look at. Programs copy it into themselves: its size may not
 * change.
 */
struct urcu_gp {
	unsigned long ctr;
	/* -1 while an updater sleeps until readers leave. */
	int32_t futex;
} __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));

/* A thread's own. All but ctr belongs to the library. */
struct urcu_reader {
	unsigned long ctr;
	char need_mb;
	struct cds_list_head node __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));
	pthread_t tid;
	unsigned int registered:1;
};

_URCU_COLD void _urcu_common_wake_up_sleeper(struct urcu_gp *gp)
{
	uatomic_set(&gp->futex, 0);
	(void) futex_async(&gp->futex, FUTEX_WAKE, 1, NULL, NULL, 0);
}

_URCU_ALWAYS_INLINE void urcu_common_wake_up_gp(struct urcu_gp *gp)
{
	if (caa_unlikely(uatomic_read(&gp->futex) == -1))
		_urcu_common_wake_up_sleeper(gp);
}

/*
 * Writes a reader's word, between what it did before and what it does after. On x86 an exchange is
 * the store and the fences in one; elsewhere release is all that is needed before.
 */
_URCU_ALWAYS_INLINE void _urcu_common_announce(unsigned long *__word, unsigned long __value, int __fence)
{
#ifdef URCU_ARCH_X86
	if (__fence) {
		(void) __atomic_exchange_n(__word, __value, __ATOMIC_SEQ_CST);
		return;
	}
#endif
	cmm_barrier();
	__atomic_store_n(__word, __value, __ATOMIC_RELEASE);
	if (__fence)
		cmm_smp_mb();
	else
		cmm_barrier();
}

/*
 * A thread's word is written by the thread alone, and by its signal handlers, which leave it as it
 * was: a plain load.
 */
_URCU_ALWAYS_INLINE void _urcu_common_read_lock(unsigned long *__word, const unsigned long *gp_ctr, int __fence)
{
	unsigned long __now = *__word;

	urcu_assert((__now & URCU_GP_CTR_NEST_MASK) != URCU_GP_CTR_NEST_MASK);
	if (caa_likely((__now & URCU_GP_CTR_NEST_MASK) == 0))
		_urcu_common_announce(__word, __atomic_load_n(gp_ctr, __ATOMIC_ACQUIRE), __fence);
	else
		__atomic_store_n(__word, __now + URCU_GP_COUNT, __ATOMIC_RELEASE);
}

/* Returns whether that was the outermost section. */
_URCU_ALWAYS_INLINE int _urcu_common_read_unlock(unsigned long *__word, int __fence)
{
	unsigned long __now = *__word;

	urcu_assert((__now & URCU_GP_CTR_NEST_MASK) != 0);
	if (caa_likely((__now & URCU_GP_CTR_NEST_MASK) == URCU_GP_COUNT)) {
		_urcu_common_announce(__word, __now - URCU_GP_COUNT, __fence);
		return 1;
	}
	__atomic_store_n(__word, __now - URCU_GP_COUNT, __ATOMIC_RELEASE);
	return 0;
}

_URCU_ALWAYS_INLINE int _urcu_common_read_ongoing(const unsigned long *__word)
{
	return (*__word & URCU_GP_CTR_NEST_MASK) != 0;
}

#ifdef __cplusplus
}
#endif

#endif
