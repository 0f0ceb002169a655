/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The memory orders that atomic operations take as an argument. */
#ifndef _URCU_UATOMIC_ORDER_H
#define _URCU_UATOMIC_ORDER_H

/*
 * The orders of C11, with the compiler's numbers, and one of liburcu's own: CMM_SEQ_CST_FENCE is
 * CMM_SEQ_CST with a full fence before and after the operation.
 */
enum cmm_memorder {
	CMM_RELAXED = 0,
	CMM_CONSUME = 1,
	CMM_ACQUIRE = 2,
	CMM_RELEASE = 3,
	CMM_ACQ_REL = 4,
	CMM_SEQ_CST = 5,
	CMM_SEQ_CST_FENCE = 6
};

/* The compiler's number for an order: __ATOMIC_SEQ_CST for CMM_SEQ_CST_FENCE. */
static __inline__ int cmm_to_c11(int mo)
{
	return mo == CMM_SEQ_CST_FENCE ? __ATOMIC_SEQ_CST : mo;
}

#endif
