/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers of the flavour bp ("bulletproof"), inlined: they need not be registered. The first
 * section of a thread does that, and its end undoes it. A reader wakes no thread: the updaters
 * of this flavour look again by themselves.
 */
#ifndef _URCU_BP_STATIC_H
#define _URCU_BP_STATIC_H

#include <urcu/static/urcu-common.h>

#ifdef __cplusplus
extern "C" {
#endif

#define URCU_BP_GP_COUNT		(1UL << 0)
#define URCU_BP_GP_CTR_PHASE		(1UL << (sizeof(long) << 2))
#define URCU_BP_GP_CTR_NEST_MASK	(URCU_BP_GP_CTR_PHASE - 1)

/* The library's, as its interface has it: a thread's record is a pointer to one of them. */
struct urcu_bp_gp {
	unsigned long ctr;
} __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));

struct urcu_bp_reader {
	unsigned long ctr;
	struct cds_list_head node __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));
	pthread_t tid;
	int alloc;
};

/* As urcu_memb_has_sys_membarrier. */
extern int urcu_bp_has_sys_membarrier;
#ifdef CONFIG_RCU_FORCE_SYS_MEMBARRIER
_URCU_REQUIRE_SYS_MEMBARRIER(urcu_bp_has_sys_membarrier, _urcu_bp_require_sys_membarrier)
#define urcu_bp_has_sys_membarrier	1
#endif

extern struct urcu_bp_gp urcu_bp_gp;

/* NULL until the thread's first section. */
extern DECLARE_URCU_TLS(struct urcu_bp_reader *, urcu_bp_reader);

/* Gives the calling thread its record, and sets urcu_bp_reader to it. */
extern void urcu_bp_register(void);

_URCU_ALWAYS_INLINE void urcu_bp_smp_mb_slave(void)
{
	if (caa_likely(urcu_bp_has_sys_membarrier))
		cmm_barrier();
	else
		cmm_smp_mb();
}

/* As urcu_bp_read_lock() of <urcu/urcu-bp.h>. */
_URCU_ALWAYS_INLINE void _urcu_bp_read_lock(void)
{
	if (caa_unlikely(!URCU_TLS(urcu_bp_reader)))
		urcu_bp_register();
	_urcu_common_read_lock(&URCU_TLS(urcu_bp_reader)->ctr, &urcu_bp_gp.ctr, !urcu_bp_has_sys_membarrier);
}

/*
 * Leaves the section that was entered last. Without a thread to wake, the outermost one is like the
 * others.
 */
_URCU_ALWAYS_INLINE void _urcu_bp_read_unlock(void)
{
	unsigned long *__word = &URCU_TLS(urcu_bp_reader)->ctr;
	unsigned long __now = *__word;

	urcu_assert((__now & URCU_BP_GP_CTR_NEST_MASK) != 0);
	_urcu_common_announce(__word, __now - URCU_BP_GP_COUNT, !urcu_bp_has_sys_membarrier);
}

/* Whether the calling thread is in a section: not 0 if so. Asking does not register the thread. */
_URCU_ALWAYS_INLINE int _urcu_bp_read_ongoing(void)
{
	return URCU_TLS(urcu_bp_reader) && _urcu_common_read_ongoing(&URCU_TLS(urcu_bp_reader)->ctr);
}

#ifdef __cplusplus
}
#endif

#endif
