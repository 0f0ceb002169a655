/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A header of liburcu 0.15, which there checks the sizes of operands. Here the operations do that:
 * see _uatomic_size for AND and OR, and the compiler for the others.
 */
#ifndef _URCU_UATOMIC_UASSERT_H
#define _URCU_UATOMIC_UASSERT_H

#include <urcu/uatomic.h>

#endif
