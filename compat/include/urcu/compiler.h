/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the other headers need from the compiler: hints, compiler barriers, and macros that C lacks.
 *
 * Names begin with caa_ (concurrent access and atomicity) or cmm_ (memory model), as in liburcu.
 * For GCC and clang; from C89 with GNU extensions to C17, and C++.
 */
#ifndef _URCU_COMPILER_H
#define _URCU_COMPILER_H

#include <stddef.h>
#include <urcu/config.h>

/* Hints that a condition is nearly always true, or nearly never. Their value is !!(x). */
#define caa_likely(x)	__builtin_expect(!!(x), 1)
#define caa_unlikely(x)	__builtin_expect(!!(x), 0)

/* Keeps the compiler from moving memory accesses across it. The CPU may still reorder them. */
#define cmm_barrier()	__asm__ __volatile__ ("" ::: "memory")

/* ptr, as a pointer to volatile. */
#define cmm_cast_volatile(ptr)	((__typeof__(*(ptr)) volatile *) (ptr))

/*
 * Reads or writes x exactly once, in one piece: the compiler does not tear, repeat or omit the
 * access. Orders no other access.
 */
#define CMM_ACCESS_ONCE(x)	(*(__typeof__(x) volatile *) &(x))

/* Maximum and minimum. Arguments may be evaluated twice. */
#ifndef caa_max
#define caa_max(a, b)	((a) > (b) ? (a) : (b))
#endif
#ifndef caa_min
#define caa_min(a, b)	((b) > (a) ? (a) : (b))
#endif

/* The number of bits of a long; of elements of an array. Constants. */
#define CAA_BITS_PER_LONG	(__SIZEOF_LONG__ * 8)
#define CAA_ARRAY_SIZE(x)	(sizeof(x) / sizeof(*(x)))

/* Joins two tokens after macro expansion. */
#define CAA_COMBINE_TOKENS(prefix, counter)	_CAA_COMBINE_TOKENS(prefix, counter)
#define _CAA_COMBINE_TOKENS(prefix, counter)	prefix##counter

/*
 * The structure whose member is at ptr, which must not be NULL. (The conditional always yields ptr;
 * its other arm makes the compiler compare the two types.)
 */
#define caa_container_of(ptr, type, member)						\
	((type *) ((char *) (1 ? (ptr) : &((type *) 0)->member) - offsetof(type, member)))

/* The same; NULL for NULL. ptr is evaluated once. */
#define caa_container_of_check_null(ptr, type, member)					\
	__extension__ ({								\
		__typeof__(ptr) __caa_ptr = (ptr);					\
		__caa_ptr ? caa_container_of(__caa_ptr, type, member) : (type *) 0;	\
	})

/* Do not compile if cond is true. Otherwise the first is an expression of value 0. */
#define CAA_BUILD_BUG_ON_ZERO(cond)	(sizeof(char[(cond) ? -1 : 1]) - 1)
#define CAA_BUILD_BUG_ON(cond)		((void) CAA_BUILD_BUG_ON_ZERO(cond))

/*
 * A declaration that does not compile if predicate is false. The compiler then shows msg, a string.
 * Before C11 and C++11 it shows c_identifier_msg, which must be an identifier.
 */
#if defined(__cplusplus) && __cplusplus >= 201103L
#define urcu_static_assert(predicate, msg, c_identifier_msg)	static_assert(predicate, msg)
#elif !defined(__cplusplus) && defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L
#define urcu_static_assert(predicate, msg, c_identifier_msg)	_Static_assert(predicate, msg)
#else
#define urcu_static_assert(predicate, msg, c_identifier_msg)				\
	typedef char __urcu_assert_##c_identifier_msg[(predicate) ? 1 : -1]		\
		__attribute__((__unused__))
#endif

/*
 * Marks a pointer that is published, and read by rcu_dereference(). For static checkers; it expands
 * to nothing.
 */
#define __rcu

/* Converts arg to a type to which it does not convert implicitly. */
#ifdef __cplusplus
#define URCU_FORCE_CAST(type, arg)	(reinterpret_cast<type>(arg))
#else
#define URCU_FORCE_CAST(type, arg)	((type) (arg))
#endif

/* Whether an integer type has negative values. A constant. */
#define caa_is_signed_type(type)	((type) -1 < (type) 1)
/* v, an integer or a pointer, as an unsigned long; the sign of a negative v is extended. */
#define caa_cast_long_keep_sign(v)	((unsigned long) (v))

/* Makes the compiler warn where the function is used. */
#define CDS_DEPRECATED(msg)	__attribute__((__deprecated__(msg)))

#if defined(__GNUC__) && !defined(__clang__)
#define URCU_GCC_VERSION	(__GNUC__ * 10000 + __GNUC_MINOR__ * 100 + __GNUC_PATCHLEVEL__)
#endif

/*
 * Internal: for a reader's few instructions, and for rarely executed code that should stay out of
 * them. The latter is inline too, since the compiler omits an inline function that is not called.
 */
#define _URCU_ALWAYS_INLINE	static __inline__ __attribute__((__always_inline__, __unused__))
#define _URCU_COLD	static __inline__ __attribute__((__cold__, __unused__))

#endif
