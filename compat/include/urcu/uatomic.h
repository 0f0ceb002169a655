/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Atomic operations on pointers and on integers of one to eight bytes. <urcu/uatomic/api.h> lists
 * them, with what each returns and orders.
 */
#ifndef _URCU_UATOMIC_H
#define _URCU_UATOMIC_H

#include <urcu/arch.h>
#include <urcu/uatomic/order.h>

#if defined(URCU_ARCH_X86)
#include <urcu/uatomic/x86.h>
#elif defined(URCU_ARCH_AARCH64)
#include <urcu/uatomic/aarch64.h>
#else
#include <urcu/uatomic/gcc.h>
#endif

#endif
