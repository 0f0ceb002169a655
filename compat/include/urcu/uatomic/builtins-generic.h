/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The atomic operations out of the compiler's, as all of ours are: a name of liburcu 0.15. */
#ifndef _URCU_UATOMIC_BUILTINS_GENERIC_H
#define _URCU_UATOMIC_BUILTINS_GENERIC_H

#include <urcu/uatomic.h>

#endif
