/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The atomic operations, for every CPU, out of the compiler's.
 *
 *	operation				answers			orders
 *	uatomic_set(addr, v)			nothing			nothing
 *	uatomic_read(addr)			the value		nothing
 *	uatomic_xchg(addr, v)			the value before	full fence before and after
 *	uatomic_cmpxchg(addr, old, _new)	the value before	full fence before and after, failed as well
 *	uatomic_add_return(addr, v), sub	the value after		full fence before and after
 *	uatomic_add(addr, v), sub, inc, dec	nothing			nothing
 *	uatomic_and(addr, v), uatomic_or	nothing			nothing
 *
 * addr points to an integer or a pointer, of at most the size of long; v may be an integer or a
 * pointer, whatever addr points to. For what orders nothing, cmm_smp_mb__before_uatomic_OPERATION()
 * and ..._after_... are the full fences that cost the least there.
 */
#ifndef _URCU_UATOMIC_GENERIC_H
#define _URCU_UATOMIC_GENERIC_H

#include <stdint.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/system.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What makes a full fence beside an atomic operation, and the order of those that need none. */
#ifndef _UATOMIC_FENCE
#define _UATOMIC_FENCE()	cmm_smp_mb()
#define _UATOMIC_UNORDERED	__ATOMIC_RELAXED
#define _UATOMIC_LOAD		__ATOMIC_RELAXED
#define _UATOMIC_STORE		__ATOMIC_RELAXED
#endif

/* The type that addr points to, without const and volatile; and v turned into it. */
#define _uatomic_type(addr)	__typeof__(__atomic_load_n((addr), __ATOMIC_RELAXED))
#define _uatomic_as(addr, v)	((_uatomic_type(addr)) caa_cast_long_keep_sign(v))

#define uatomic_set(addr, v)	__atomic_store_n((addr), (v), _UATOMIC_STORE)
#define uatomic_read(addr)	__extension__ ({ __atomic_load_n((addr), _UATOMIC_LOAD); })

#define uatomic_xchg(addr, v)							\
	__extension__ ({							\
		_uatomic_type(addr) __uatomic_found;				\
		_UATOMIC_FENCE();						\
		__uatomic_found = __atomic_exchange_n((addr), _uatomic_as((addr), (v)),	\
				__ATOMIC_SEQ_CST);				\
		_UATOMIC_FENCE();						\
		__uatomic_found;						\
	})

#define uatomic_cmpxchg(addr, old, _new)					\
	__extension__ ({							\
		_uatomic_type(addr) __uatomic_found = _uatomic_as((addr), (old));	\
		_UATOMIC_FENCE();						\
		(void) __atomic_compare_exchange_n((addr), &__uatomic_found,	\
				_uatomic_as((addr), (_new)), 0,			\
				__ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);		\
		_UATOMIC_FENCE();						\
		__uatomic_found;						\
	})

#define uatomic_add_return(addr, v)						\
	__extension__ ({							\
		_uatomic_type(addr) __uatomic_now;				\
		_UATOMIC_FENCE();						\
		__uatomic_now = __atomic_add_fetch((addr), caa_cast_long_keep_sign(v),	\
				__ATOMIC_SEQ_CST);				\
		_UATOMIC_FENCE();						\
		__uatomic_now;							\
	})
#define uatomic_sub_return(addr, v)	uatomic_add_return((addr), -caa_cast_long_keep_sign(v))

#define uatomic_add(addr, v)							\
	((void) __atomic_fetch_add((addr), caa_cast_long_keep_sign(v), _UATOMIC_UNORDERED))
#define uatomic_sub(addr, v)							\
	((void) __atomic_fetch_sub((addr), caa_cast_long_keep_sign(v), _UATOMIC_UNORDERED))
#define uatomic_inc(addr)	uatomic_add((addr), 1)
#define uatomic_dec(addr)	uatomic_sub((addr), 1)

/*
 * On pointers too, whose low bits are flags: by size therefore, under types that may stand for any
 * other.
 */
typedef uint8_t __attribute__((__may_alias__)) _uatomic_1;
typedef uint16_t __attribute__((__may_alias__)) _uatomic_2;
typedef uint32_t __attribute__((__may_alias__)) _uatomic_4;
typedef unsigned long __attribute__((__may_alias__)) _uatomic_long;

static __inline__ void _uatomic_and(volatile void *addr, unsigned long val, int len)
{
	if (len == 1)
		__atomic_fetch_and((volatile _uatomic_1 *) addr, (uint8_t) val, _UATOMIC_UNORDERED);
	else if (len == 2)
		__atomic_fetch_and((volatile _uatomic_2 *) addr, (uint16_t) val, _UATOMIC_UNORDERED);
	else if (len == 4)
		__atomic_fetch_and((volatile _uatomic_4 *) addr, (uint32_t) val, _UATOMIC_UNORDERED);
	else
		__atomic_fetch_and((volatile _uatomic_long *) addr, val, _UATOMIC_UNORDERED);
}

static __inline__ void _uatomic_or(volatile void *addr, unsigned long val, int len)
{
	if (len == 1)
		__atomic_fetch_or((volatile _uatomic_1 *) addr, (uint8_t) val, _UATOMIC_UNORDERED);
	else if (len == 2)
		__atomic_fetch_or((volatile _uatomic_2 *) addr, (uint16_t) val, _UATOMIC_UNORDERED);
	else if (len == 4)
		__atomic_fetch_or((volatile _uatomic_4 *) addr, (uint32_t) val, _UATOMIC_UNORDERED);
	else
		__atomic_fetch_or((volatile _uatomic_long *) addr, val, _UATOMIC_UNORDERED);
}

/* The size of what addr points to, if it is one that there are operations for. */
#define _uatomic_size(addr)							\
	((int) (sizeof(*(addr)) + CAA_BUILD_BUG_ON_ZERO(sizeof(*(addr)) != 1 && sizeof(*(addr)) != 2	\
			&& sizeof(*(addr)) != 4 && sizeof(*(addr)) != sizeof(long))))

#define uatomic_and(addr, v)							\
	_uatomic_and((addr), caa_cast_long_keep_sign(v), _uatomic_size(addr))
#define uatomic_or(addr, v)							\
	_uatomic_or((addr), caa_cast_long_keep_sign(v), _uatomic_size(addr))

#define cmm_smp_mb__before_uatomic_and()	_UATOMIC_FENCE()
#define cmm_smp_mb__after_uatomic_and()		_UATOMIC_FENCE()
#define cmm_smp_mb__before_uatomic_or()		_UATOMIC_FENCE()
#define cmm_smp_mb__after_uatomic_or()		_UATOMIC_FENCE()
#define cmm_smp_mb__before_uatomic_add()	_UATOMIC_FENCE()
#define cmm_smp_mb__after_uatomic_add()		_UATOMIC_FENCE()
#define cmm_smp_mb__before_uatomic_sub()	_UATOMIC_FENCE()
#define cmm_smp_mb__after_uatomic_sub()		_UATOMIC_FENCE()
#define cmm_smp_mb__before_uatomic_inc()	_UATOMIC_FENCE()
#define cmm_smp_mb__after_uatomic_inc()		_UATOMIC_FENCE()
#define cmm_smp_mb__before_uatomic_dec()	_UATOMIC_FENCE()
#define cmm_smp_mb__after_uatomic_dec()		_UATOMIC_FENCE()

#ifdef __cplusplus
}
#endif

#endif
