/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Publication, inlined. <urcu/pointer.h> says what each macro promises. */
#ifndef _URCU_POINTER_STATIC_H
#define _URCU_POINTER_STATIC_H

#include <urcu/annotate.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/system.h>
#include <urcu/uatomic.h>

/*
 * A consume load: the object that p points to is read after p. Compilers make it an acquire load,
 * which on x86 is any load. A program for which that costs too much may choose a plain load, and
 * then has only the ordering that the CPU provides.
 */
#ifdef URCU_DEREFERENCE_USE_VOLATILE
#define _rcu_dereference(p)	CMM_ACCESS_ONCE(p)
#else
#define __URCU_DEREFERENCE_USE_ATOMIC_CONSUME
#define _rcu_dereference(p)	__extension__ ({ __atomic_load_n(&(p), __ATOMIC_CONSUME); })
#endif

/*
 * Returns nonzero if two pointers are equal. Use it instead of == if one of them is the result of
 * rcu_dereference() and is dereferenced afterwards: after == the compiler might dereference the
 * other one, which may have been loaded before the object was written. liburcu has it since 0.15.
 */
static __inline__ int cmm_ptr_eq(const void *a, const void *b)
{
	/* Hides from the compiler where the values come from. */
	__asm__ ("" : "+r" (a));
	__asm__ ("" : "+r" (b));
	return a == b;
}

#define _rcu_cmpxchg_pointer(p, old, _new)					\
	__extension__ ({							\
		__typeof__(*(p)) __urcu_old = (old);				\
		__typeof__(*(p)) __urcu_new = (_new);				\
		uatomic_cmpxchg((p), __urcu_old, __urcu_new);			\
	})

#define _rcu_xchg_pointer(p, v)							\
	__extension__ ({							\
		__typeof__(*(p)) __urcu_new = (v);				\
		uatomic_xchg((p), __urcu_new);					\
	})

/* Release: a reader that finds v finds the object written. */
#define _rcu_set_pointer(p, v)							\
	do {									\
		__typeof__(*(p)) __urcu_new = (v);				\
		__atomic_store_n((p), __urcu_new, __ATOMIC_RELEASE);		\
	} while (0)

#define _rcu_assign_pointer(p, v)	_rcu_set_pointer(&(p), (v))

#endif
