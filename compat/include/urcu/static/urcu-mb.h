/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers of the flavour mb, inlined: a full fence each time a section begins or ends. A thread has
 * to be registered first. Sections nest; they may be in signal handlers. <urcu/static/urcu-
 * common.h> has the protocol.
 */
#ifndef _URCU_MB_STATIC_H
#define _URCU_MB_STATIC_H

#include <urcu/static/urcu-common.h>

#ifdef __cplusplus
extern "C" {
#endif

extern struct urcu_gp urcu_mb_gp;

extern DECLARE_URCU_TLS(struct urcu_reader, urcu_mb_reader);

/* As urcu_mb_read_lock() of <urcu/urcu-mb.h>. */
_URCU_ALWAYS_INLINE void _urcu_mb_read_lock(void)
{
	urcu_assert(URCU_TLS(urcu_mb_reader).registered);
	_urcu_common_read_lock(&URCU_TLS(urcu_mb_reader).ctr, &urcu_mb_gp.ctr, 1);
}

/* As urcu_mb_read_unlock(). */
_URCU_ALWAYS_INLINE void _urcu_mb_read_unlock(void)
{
	urcu_assert(URCU_TLS(urcu_mb_reader).registered);
	if (_urcu_common_read_unlock(&URCU_TLS(urcu_mb_reader).ctr, 1))
		urcu_common_wake_up_gp(&urcu_mb_gp);
}

/* As urcu_mb_read_ongoing(). */
_URCU_ALWAYS_INLINE int _urcu_mb_read_ongoing(void)
{
	return _urcu_common_read_ongoing(&URCU_TLS(urcu_mb_reader).ctr);
}

#ifdef __cplusplus
}
#endif

#endif
