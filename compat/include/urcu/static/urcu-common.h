/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The inlined readers of memb, mb and signal, and parts of QSBR's. They are compiled into programs,
 * so this protocol, liburcu 0.13's, is a contract between programs and libraries of any version.
 *
 *	lock	word = gp.ctr if the nesting is 0, else word + 1
 *	unlock	word - 1; the outermost one then wakes an updater that sleeps (gp.futex is -1)
 *
 * The low half of a reader's word counts nesting; the high half belongs to the updaters. Orderings:
 * the word is always stored with release, so a section's reads come before the updater finds that
 * the section has ended; gp.ctr is loaded with acquire. On x86 both are plain moves. Between the
 * word and the section there is also a full fence, or, with membarrier, a compiler barrier: the
 * updater then executes the fence for all readers.
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
 * A program that defines CONFIG_RCU_FORCE_SYS_MEMBARRIER claims that every system it runs on has
 * membarrier. That is checked once, before main(): without it, its readers would have no fences.
 */
#ifdef CONFIG_RCU_FORCE_SYS_MEMBARRIER
#define _URCU_REQUIRE_SYS_MEMBARRIER(__has, __require)						\
	static void __attribute__((__constructor__)) __require(void)				\
	{											\
		if (__has)									\
			return;									\
		fprintf(stderr, "liburcu (quiescence): this program was compiled with "		\
				"CONFIG_RCU_FORCE_SYS_MEMBARRIER, but membarrier(2) is not "	\
				"available: allow it, or recompile without the macro\n");	\
		abort();									\
	}
#endif

/*
 * The words of a flavour that its readers load. Executables have a copy of it, so its size must not
 * change.
 */
struct urcu_gp {
	unsigned long ctr;
	/* -1 while an updater sleeps and waits for readers. */
	int32_t futex;
} __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));

/* The record of a thread. All members but ctr belong to the library. */
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
 * Stores a reader's word, with fences on both sides if __fence is set. On x86 an exchange is the
 * store and both fences; elsewhere a release suffices before the store.
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
 * Only the thread itself writes its word, and its signal handlers, which restore it. So a plain
 * load suffices.
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
