/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The numbers of system calls. */
#ifndef _URCU_SYSCALL_COMPAT_H
#define _URCU_SYSCALL_COMPAT_H

#include <sys/syscall.h>

#endif
