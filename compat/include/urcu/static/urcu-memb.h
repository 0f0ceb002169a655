/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers of the flavour memb, inlined: no fence where the kernel has membarrier, full fences where
 * it has not. A thread has to be registered first. Sections nest; they may be in signal handlers.
 * <urcu/static/urcu-common.h> has the protocol.
 */
#ifndef _URCU_MEMB_STATIC_H
#define _URCU_MEMB_STATIC_H

#include <urcu/static/urcu-common.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Whether the kernel has membarrier: found out once, when the library is loaded. A program built
 * for systems that all have it may say so, and its readers ask no more.
 */
extern int urcu_memb_has_sys_membarrier;
#ifdef CONFIG_RCU_FORCE_SYS_MEMBARRIER
_URCU_REQUIRE_SYS_MEMBARRIER(urcu_memb_has_sys_membarrier, _urcu_memb_require_sys_membarrier)
#define urcu_memb_has_sys_membarrier	1
#endif

/* The readers' fence: the compiler's only, where updaters can fence for all. */
_URCU_ALWAYS_INLINE void urcu_memb_smp_mb_slave(void)
{
	if (caa_likely(urcu_memb_has_sys_membarrier))
		cmm_barrier();
	else
		cmm_smp_mb();
}

extern struct urcu_gp urcu_memb_gp;

extern DECLARE_URCU_TLS(struct urcu_reader, urcu_memb_reader);

/* As urcu_memb_read_lock() of <urcu/urcu-memb.h>. */
_URCU_ALWAYS_INLINE void _urcu_memb_read_lock(void)
{
	urcu_assert(URCU_TLS(urcu_memb_reader).registered);
	_urcu_common_read_lock(&URCU_TLS(urcu_memb_reader).ctr, &urcu_memb_gp.ctr, !urcu_memb_has_sys_membarrier);
}

/* As urcu_memb_read_unlock(). */
_URCU_ALWAYS_INLINE void _urcu_memb_read_unlock(void)
{
	urcu_assert(URCU_TLS(urcu_memb_reader).registered);
	if (_urcu_common_read_unlock(&URCU_TLS(urcu_memb_reader).ctr, !urcu_memb_has_sys_membarrier))
		urcu_common_wake_up_gp(&urcu_memb_gp);
}

/* As urcu_memb_read_ongoing(). */
_URCU_ALWAYS_INLINE int _urcu_memb_read_ongoing(void)
{
	return _urcu_common_read_ongoing(&URCU_TLS(urcu_memb_reader).ctr);
}

#ifdef __cplusplus
}
#endif

#endif
