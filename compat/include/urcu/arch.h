/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The CPU that the program is compiled for (URCU_ARCH_*), and its memory barriers. */
#ifndef _URCU_ARCH_H
#define _URCU_ARCH_H

#if defined(__x86_64__)
#define URCU_ARCH_X86 1
#define URCU_ARCH_AMD64 1
#include <urcu/arch/x86.h>
#elif defined(__i386__)
#define URCU_ARCH_X86 1
#define URCU_ARCH_I386 1
#include <urcu/arch/x86.h>
#elif defined(__aarch64__)
#define URCU_ARCH_AARCH64 1
#include <urcu/arch/aarch64.h>
#else
#include <urcu/arch/gcc.h>
#endif

#endif
