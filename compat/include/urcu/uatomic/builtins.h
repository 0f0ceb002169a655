/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A header of liburcu 0.15. All our atomic operations are built on those of the compiler. */
#ifndef _URCU_UATOMIC_BUILTINS_H
#define _URCU_UATOMIC_BUILTINS_H

#include <urcu/uatomic.h>

#endif
