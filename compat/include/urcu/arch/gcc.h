/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A CPU that has no header of its own: the compiler knows its barriers. */
#ifndef _URCU_ARCH_GCC_H
#define _URCU_ARCH_GCC_H

#include <urcu/arch/generic.h>

#endif
