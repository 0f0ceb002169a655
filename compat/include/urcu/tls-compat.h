/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Thread-local variables with C linkage, alike in C and C++. __thread even where the language has a
 * keyword: to a C++ thread_local of another file every access would be a function's call, in case
 * it had a constructor.
 */
#ifndef _URCU_TLS_COMPAT_H
#define _URCU_TLS_COMPAT_H

#include <stdlib.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/config.h>

#define URCU_TLS_STORAGE_CLASS	__thread

/* Declares a variable that each thread has one of; defines it; and with a value to begin with. */
#define DECLARE_URCU_TLS(type, name)		URCU_TLS_STORAGE_CLASS type name
#define DEFINE_URCU_TLS(type, name)		URCU_TLS_STORAGE_CLASS type name
#define DEFINE_URCU_TLS_INIT(type, name, init)	URCU_TLS_STORAGE_CLASS type name = (init)

/* The calling thread's one. */
#define URCU_TLS(name)				(name)

#endif
