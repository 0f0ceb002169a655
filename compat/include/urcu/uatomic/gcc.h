/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A CPU without a header of its own: the compiler has the operations, in these sizes besides int
 * and long.
 */
#ifndef _URCU_ARCH_UATOMIC_GCC_H
#define _URCU_ARCH_UATOMIC_GCC_H

#define UATOMIC_HAS_ATOMIC_BYTE
#define UATOMIC_HAS_ATOMIC_SHORT

#include <urcu/uatomic/generic.h>

#endif
