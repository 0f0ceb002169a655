/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Thread-local variables with C linkage, in C and C++. They use __thread even if the language has a
 * keyword of its own: each access to a C++ thread_local of another file would call a function, in
 * case the variable has a constructor.
 */
#ifndef _URCU_TLS_COMPAT_H
#define _URCU_TLS_COMPAT_H

#include <stdlib.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/config.h>

#define URCU_TLS_STORAGE_CLASS	__thread

/* Declares a thread-local variable; defines it; defines it with an initial value. */
#define DECLARE_URCU_TLS(type, name)		URCU_TLS_STORAGE_CLASS type name
#define DEFINE_URCU_TLS(type, name)		URCU_TLS_STORAGE_CLASS type name
#define DEFINE_URCU_TLS_INIT(type, name, init)	URCU_TLS_STORAGE_CLASS type name = (init)

/* The calling thread's variable. */
#define URCU_TLS(name)				(name)

#endif
