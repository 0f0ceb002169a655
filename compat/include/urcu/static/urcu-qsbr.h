/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers of the flavour qsbr, inlined: sections cost nothing. Instead, a thread announces now and
 * then that it is in no section (a quiescent state), before it sleeps (offline), and when it is
 * back (online).
 *
 *	quiescent state	word = gp.ctr, unless it is that already
 *	offline		word = 0
 *	online		word = gp.ctr
 *
 * After the first two the thread wakes an updater that waits for this thread (waiting). Each store
 * of the word has a full fence; <urcu/static/urcu-common.h> has the orderings.
 */
#ifndef _URCU_QSBR_STATIC_H
#define _URCU_QSBR_STATIC_H

#include <limits.h>
#include <urcu/static/urcu-common.h>

#ifdef __cplusplus
extern "C" {
#endif

#define URCU_QSBR_GP_ONLINE	(1UL << 0)
#define URCU_QSBR_GP_CTR	(1UL << 1)

extern struct urcu_gp urcu_qsbr_gp;

/* The record of a thread. ctr is 0 while it is offline; an updater that sleeps sets waiting. */
struct urcu_qsbr_reader {
	unsigned long ctr;
	struct cds_list_head node __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));
	int waiting;
	pthread_t tid;
	unsigned int registered:1;
};

extern DECLARE_URCU_TLS(struct urcu_qsbr_reader, urcu_qsbr_reader);

_URCU_COLD void _urcu_qsbr_wake_up_sleeper(void)
{
	uatomic_set(&URCU_TLS(urcu_qsbr_reader).waiting, 0);
	/*
	 * The updater sets the futex, then each reader's waiting. The thread clears waiting first, so
	 * that it sees the futex, or the updater's store to waiting remains.
	 */
	cmm_smp_mb();
	urcu_common_wake_up_gp(&urcu_qsbr_gp);
}

_URCU_ALWAYS_INLINE void urcu_qsbr_wake_up_gp(void)
{
	if (caa_unlikely(uatomic_read(&URCU_TLS(urcu_qsbr_reader).waiting)))
		_urcu_qsbr_wake_up_sleeper();
}

/* The beginning and the end of a section: they document the program, and check with DEBUG_RCU. */
_URCU_ALWAYS_INLINE void _urcu_qsbr_read_lock(void)
{
	urcu_assert(URCU_TLS(urcu_qsbr_reader).ctr);
}

_URCU_ALWAYS_INLINE void _urcu_qsbr_read_unlock(void)
{
	urcu_assert(URCU_TLS(urcu_qsbr_reader).ctr);
}

/* Returns nonzero if the calling thread is online, and so may be in a section. */
_URCU_ALWAYS_INLINE int _urcu_qsbr_read_ongoing(void)
{
	return URCU_TLS(urcu_qsbr_reader).ctr != 0;
}

_URCU_ALWAYS_INLINE void _urcu_qsbr_quiescent_state_update_and_wakeup(unsigned long gp_ctr)
{
	_urcu_common_announce(&URCU_TLS(urcu_qsbr_reader).ctr, gp_ctr, 1);
	urcu_qsbr_wake_up_gp();
}

/* Announces a quiescent state of the calling thread, which is online and in no section. */
_URCU_ALWAYS_INLINE void _urcu_qsbr_quiescent_state(void)
{
	unsigned long gp_ctr;

	urcu_assert(URCU_TLS(urcu_qsbr_reader).registered);
	/* Acquire: a section under the new number sees what was published before the number. */
	gp_ctr = __atomic_load_n(&urcu_qsbr_gp.ctr, __ATOMIC_ACQUIRE);
	if (caa_unlikely(gp_ctr != URCU_TLS(urcu_qsbr_reader).ctr))
		_urcu_qsbr_quiescent_state_update_and_wakeup(gp_ctr);
}

/* Takes the calling thread offline: it enters no section until it is online again. */
_URCU_ALWAYS_INLINE void _urcu_qsbr_thread_offline(void)
{
	urcu_assert(URCU_TLS(urcu_qsbr_reader).registered);
	_urcu_common_announce(&URCU_TLS(urcu_qsbr_reader).ctr, 0, 1);
	urcu_qsbr_wake_up_gp();
}

_URCU_ALWAYS_INLINE void _urcu_qsbr_thread_online(void)
{
	urcu_assert(URCU_TLS(urcu_qsbr_reader).registered);
	_urcu_common_announce(&URCU_TLS(urcu_qsbr_reader).ctr,
			__atomic_load_n(&urcu_qsbr_gp.ctr, __ATOMIC_ACQUIRE), 1);
}

#ifdef __cplusplus
}
#endif

#endif
