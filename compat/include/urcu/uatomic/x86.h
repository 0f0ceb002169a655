/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * x86: all sizes. Every locked instruction is a full fence, so that no operation needs one beside
 * it, and those that are documented to order nothing order everything; a load is an acquire, and a
 * store a release. The compiler knows it so: programs have come to count on it.
 */
#ifndef _URCU_ARCH_UATOMIC_X86_H
#define _URCU_ARCH_UATOMIC_X86_H

#include <urcu/compiler.h>

#define UATOMIC_HAS_ATOMIC_BYTE
#define UATOMIC_HAS_ATOMIC_SHORT

#define _UATOMIC_FENCE()	cmm_barrier()
#define _UATOMIC_UNORDERED	CMM_SEQ_CST
#define _UATOMIC_LOAD		CMM_ACQUIRE
#define _UATOMIC_STORE		CMM_RELEASE

#include <urcu/uatomic/generic.h>

#endif
