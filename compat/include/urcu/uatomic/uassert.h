/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What liburcu 0.15 checks of an operand's size with. Here the operations do not compile for one
 * that they are not there for (_uatomic_size).
 */
#ifndef _URCU_UATOMIC_UASSERT_H
#define _URCU_UATOMIC_UASSERT_H

#include <urcu/uatomic.h>

#endif
