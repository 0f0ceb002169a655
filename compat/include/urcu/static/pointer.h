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
 * Consume, which compilers make an acquire: what p points to is read after p. On x86 any load is
 * one. A program whose compiler makes too much of it may choose a plain load, and has to keep to
 * what the CPU itself orders.
 */
#ifdef URCU_DEREFERENCE_USE_VOLATILE
#define _rcu_dereference(p)	CMM_ACCESS_ONCE(p)
#else
#define __URCU_DEREFERENCE_USE_ATOMIC_CONSUME
#define _rcu_dereference(p)	__extension__ ({ __atomic_load_n(&(p), __ATOMIC_CONSUME); })
#endif

/*
 * Returns whether two pointers are equal: not 0 if so. To be used in place of == on one that
 * rcu_dereference() has returned, where it is followed afterwards: the compiler might else follow
 * the other one, which may have been loaded before what it points to was written. liburcu has it
 * since 0.15.
 */
static __inline__ int cmm_ptr_eq(const void *a, const void *b)
{
	/* Values that the compiler knows nothing of. */
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

/* Release: what v points to has been written when a reader finds v. */
#define _rcu_set_pointer(p, v)							\
	do {									\
		__typeof__(*(p)) __urcu_new = (v);				\
		__atomic_store_n((p), __urcu_new, __ATOMIC_RELEASE);		\
	} while (0)

#define _rcu_assign_pointer(p, v)	_rcu_set_pointer(&(p), (v))

#endif
