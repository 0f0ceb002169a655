/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * x86: operations of all sizes. A locked instruction is a full fence, so a read-modify-write needs
 * no other one, and those that are documented to order nothing order everything. A load acquires,
 * and a store releases. The compiler is told so too, since programs have come to rely on it.
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
