/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers of the flavour signal, inlined: no fence ever, updaters fence for all. Our library does
 * so by membarrier, and needs no signal; the flavour is here for programs that chose it. A thread
 * has to be registered first. Sections nest; they may be in signal handlers. <urcu/static/urcu-
 * common.h> has the protocol.
 */
#ifndef _URCU_SIGNAL_STATIC_H
#define _URCU_SIGNAL_STATIC_H

#include <urcu/static/urcu-common.h>
#include <urcu/static/urcu-signal-nr.h>

#ifdef __cplusplus
extern "C" {
#endif

extern struct urcu_gp urcu_signal_gp;

extern DECLARE_URCU_TLS(struct urcu_reader, urcu_signal_reader);

/* As urcu_signal_read_lock() of <urcu/urcu-signal.h>. */
_URCU_ALWAYS_INLINE void _urcu_signal_read_lock(void)
{
	urcu_assert(URCU_TLS(urcu_signal_reader).registered);
	_urcu_common_read_lock(&URCU_TLS(urcu_signal_reader).ctr, &urcu_signal_gp.ctr, 0);
}

/* As urcu_signal_read_unlock(). */
_URCU_ALWAYS_INLINE void _urcu_signal_read_unlock(void)
{
	urcu_assert(URCU_TLS(urcu_signal_reader).registered);
	if (_urcu_common_read_unlock(&URCU_TLS(urcu_signal_reader).ctr, 0))
		urcu_common_wake_up_gp(&urcu_signal_gp);
}

/* As urcu_signal_read_ongoing(). */
_URCU_ALWAYS_INLINE int _urcu_signal_read_ongoing(void)
{
	return _urcu_common_read_ongoing(&URCU_TLS(urcu_signal_reader).ctr);
}

#ifdef __cplusplus
}
#endif

#endif
