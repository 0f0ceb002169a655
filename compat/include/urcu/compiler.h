/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the other headers ask of the compiler: hints, barriers for it alone, and the macros that C
 * lacks.
 *
 * In namespace caa_ (concurrent access and atomicity) and cmm_ (memory model), as programs for
 * liburcu know them. GCC or clang; from C89 with GNU extensions to C17, and C++.
 */
#ifndef _URCU_COMPILER_H
#define _URCU_COMPILER_H

#include <stddef.h>

#define caa_likely(x)	__builtin_expect(!!(x), 1)
#define caa_unlikely(x)	__builtin_expect(!!(x), 0)

/* Keeps the compiler from moving memory accesses across. The CPU still may. */
#define cmm_barrier()	__asm__ __volatile__ ("" ::: "memory")

/*
 * x, read or written once, whole, and now: neither torn, nor repeated, nor left out. Orders nothing
 * else.
 */
#define CMM_ACCESS_ONCE(x)	(*(__typeof__(x) volatile *) &(x))

/* Arguments are evaluated twice. */
#ifndef caa_max
#define caa_max(a, b)	((a) > (b) ? (a) : (b))
#endif
#ifndef caa_min
#define caa_min(a, b)	((b) > (a) ? (a) : (b))
#endif

#define CAA_BITS_PER_LONG	(__SIZEOF_LONG__ * 8)
#define CAA_ARRAY_SIZE(x)	(sizeof(x) / sizeof(*(x)))

/*
 * The structure of that type whose member is at ptr. Of the two arms of the conditional only ptr is
 * ever taken; the other is there for the compiler to compare their types.
 */
#define caa_container_of(ptr, type, member)						\
	((type *) ((char *) (1 ? (ptr) : &((type *) 0)->member) - offsetof(type, member)))

/* Does not compile if cond is true. The first is an expression of value 0 otherwise. */
#define CAA_BUILD_BUG_ON_ZERO(cond)	(sizeof(char[(cond) ? -1 : 1]) - 1)
#define CAA_BUILD_BUG_ON(cond)		((void) CAA_BUILD_BUG_ON_ZERO(cond))

/*
 * Says of a pointer that it is published, and to be read by rcu_dereference(). For checkers; the
 * compiler sees nothing.
 */
#define __rcu

#ifdef __cplusplus
#define URCU_FORCE_CAST(type, arg)	(reinterpret_cast<type>(arg))
#else
#define URCU_FORCE_CAST(type, arg)	((type) (arg))
#endif

#define caa_is_signed_type(type)	((type) -1 < (type) 1)
/* v, an integer or a pointer, as a long's bits: a negative one stays negative. */
#define caa_cast_long_keep_sign(v)	((unsigned long) (v))

#define CDS_DEPRECATED(msg)	__attribute__((__deprecated__(msg)))

#if defined(__GNUC__) && !defined(__clang__)
#define URCU_GCC_VERSION	(__GNUC__ * 10000 + __GNUC_MINOR__ * 100 + __GNUC_PATCHLEVEL__)
#endif

/*
 * Ours: for the few instructions of a reader, and for what should not stand among them. Inline as
 * well, since only that is left out where it is not called.
 */
#define _URCU_ALWAYS_INLINE	static __inline__ __attribute__((__always_inline__, __unused__))
#define _URCU_COLD	static __inline__ __attribute__((__cold__, __unused__))

#endif
