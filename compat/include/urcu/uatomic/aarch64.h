/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* 64-bit ARM: operations of all sizes. */
#ifndef _URCU_ARCH_UATOMIC_AARCH64_H
#define _URCU_ARCH_UATOMIC_AARCH64_H

#define UATOMIC_HAS_ATOMIC_BYTE
#define UATOMIC_HAS_ATOMIC_SHORT

#include <urcu/uatomic/generic.h>

#endif
