//@ memb mb bp signal
/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
//@ memb
 * Readers of the flavour memb, inlined. They execute no fence if the kernel has membarrier, and
 * full fences otherwise. Threads must register first. Sections nest, and may be in signal handlers.
 * <urcu/static/urcu-common.h> has the protocol.
//@ mb
 * Readers of the flavour mb, inlined: a full fence each time a section begins or ends. Threads must
 * register first. Sections nest, and may be in signal handlers.
 * <urcu/static/urcu-common.h> has the protocol.
//@ bp
 * Readers of the flavour bp ("bulletproof"), inlined. Threads need not register: a thread's first
 * section does it, and the thread's exit unregisters it. A reader wakes no thread: the updaters of
 * this flavour poll.
//@ signal
 * Readers of the flavour signal, inlined. They never execute a fence: updaters do it for them, in
 * our library by membarrier, without a signal. The flavour exists for programs written for it.
 * Threads must register first. Sections nest, and may be in signal handlers.
 * <urcu/static/urcu-common.h> has the protocol.
//@ memb mb bp signal
 */
#ifndef _URCU_@FLAVOR@_STATIC_H
#define _URCU_@FLAVOR@_STATIC_H

#include <urcu/static/urcu-common.h>
//@ signal
#include <urcu/static/urcu-signal-nr.h>
//@ memb mb bp signal

#ifdef __cplusplus
extern "C" {
#endif

//@ bp
#define URCU_BP_GP_COUNT		(1UL << 0)
#define URCU_BP_GP_CTR_PHASE		(1UL << (sizeof(long) << 2))
#define URCU_BP_GP_CTR_NEST_MASK	(URCU_BP_GP_CTR_PHASE - 1)

/* The flavour's words, and a thread's record: liburcu's layouts. The library owns both. */
struct urcu_@flavor@_gp {
	unsigned long ctr;
} __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));

struct urcu_@flavor@_reader {
	unsigned long ctr;
	struct cds_list_head node __attribute__((__aligned__(CAA_CACHE_LINE_SIZE)));
	pthread_t tid;
	int alloc;
};

//@ memb bp
/*
 * Whether the kernel has membarrier: set once, when the library is loaded. A program for systems
 * that all have it may say so; its readers then do not check.
 */
extern int urcu_@flavor@_has_sys_membarrier;
#ifdef CONFIG_RCU_FORCE_SYS_MEMBARRIER
_URCU_REQUIRE_SYS_MEMBARRIER(urcu_@flavor@_has_sys_membarrier,
		_urcu_@flavor@_require_sys_membarrier)
#define urcu_@flavor@_has_sys_membarrier	1
#endif

/* The readers' fence: only a compiler barrier if updaters can execute fences for all threads. */
_URCU_ALWAYS_INLINE void urcu_@flavor@_smp_mb_slave(void)
{
	if (caa_likely(urcu_@flavor@_has_sys_membarrier))
		cmm_barrier();
	else
		cmm_smp_mb();
}

//@ memb mb signal
extern struct urcu_gp urcu_@flavor@_gp;

extern DECLARE_URCU_TLS(struct urcu_reader, urcu_@flavor@_reader);

//@ bp
extern struct urcu_@flavor@_gp urcu_@flavor@_gp;

/* NULL until the thread's first section. */
extern DECLARE_URCU_TLS(struct urcu_@flavor@_reader *, urcu_@flavor@_reader);

/* Gives the calling thread a record, to which it sets urcu_@flavor@_reader. */
extern void urcu_@flavor@_register(void);

//@ memb mb bp signal
/* As urcu_@flavor@_read_lock() of <urcu/urcu-@flavor@.h>. */
_URCU_ALWAYS_INLINE void _urcu_@flavor@_read_lock(void)
{
//@ memb mb signal
	urcu_assert(URCU_TLS(urcu_@flavor@_reader).registered);
//@ memb
	_urcu_common_read_lock(&URCU_TLS(urcu_@flavor@_reader).ctr, &urcu_@flavor@_gp.ctr,
			!urcu_@flavor@_has_sys_membarrier);
//@ mb
	_urcu_common_read_lock(&URCU_TLS(urcu_@flavor@_reader).ctr, &urcu_@flavor@_gp.ctr, 1);
//@ signal
	_urcu_common_read_lock(&URCU_TLS(urcu_@flavor@_reader).ctr, &urcu_@flavor@_gp.ctr, 0);
//@ bp
	if (caa_unlikely(!URCU_TLS(urcu_@flavor@_reader)))
		urcu_@flavor@_register();
	_urcu_common_read_lock(&URCU_TLS(urcu_@flavor@_reader)->ctr, &urcu_@flavor@_gp.ctr,
			!urcu_@flavor@_has_sys_membarrier);
//@ memb mb bp signal
}

//@ memb mb signal
/* As urcu_@flavor@_read_unlock(). */
_URCU_ALWAYS_INLINE void _urcu_@flavor@_read_unlock(void)
{
	urcu_assert(URCU_TLS(urcu_@flavor@_reader).registered);
//@ memb
	if (_urcu_common_read_unlock(&URCU_TLS(urcu_@flavor@_reader).ctr,
			!urcu_@flavor@_has_sys_membarrier))
//@ mb
	if (_urcu_common_read_unlock(&URCU_TLS(urcu_@flavor@_reader).ctr, 1))
//@ signal
	if (_urcu_common_read_unlock(&URCU_TLS(urcu_@flavor@_reader).ctr, 0))
//@ memb mb signal
		urcu_common_wake_up_gp(&urcu_@flavor@_gp);
}

/* As urcu_@flavor@_read_ongoing(). */
_URCU_ALWAYS_INLINE int _urcu_@flavor@_read_ongoing(void)
{
	return _urcu_common_read_ongoing(&URCU_TLS(urcu_@flavor@_reader).ctr);
}

//@ bp
/*
 * Leaves the section that was entered last. The outermost one is like the others, since there is no
 * thread to wake.
 */
_URCU_ALWAYS_INLINE void _urcu_@flavor@_read_unlock(void)
{
	unsigned long *__word = &URCU_TLS(urcu_@flavor@_reader)->ctr;
	unsigned long __now = *__word;

	urcu_assert((__now & URCU_BP_GP_CTR_NEST_MASK) != 0);
	_urcu_common_announce(__word, __now - URCU_BP_GP_COUNT, !urcu_@flavor@_has_sys_membarrier);
}

/* Returns nonzero if the calling thread is in a section. Does not register the thread. */
_URCU_ALWAYS_INLINE int _urcu_@flavor@_read_ongoing(void)
{
	return URCU_TLS(urcu_@flavor@_reader) &&
		_urcu_common_read_ongoing(&URCU_TLS(urcu_@flavor@_reader)->ctr);
}

//@ memb mb bp signal
#ifdef __cplusplus
}
#endif

#endif
