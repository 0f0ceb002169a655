/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A CPU without a header of its own: its barriers are the compiler's fences. */
#ifndef _URCU_ARCH_GCC_H
#define _URCU_ARCH_GCC_H

#include <urcu/arch/generic.h>

#endif
