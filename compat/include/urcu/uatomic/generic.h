/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The atomic operations with a memory order (uatomic_OPERATION_mo), for every CPU, built on those
 * of the compiler. <urcu/uatomic/api.h> says what each does, and defines their short names.
 */
#ifndef _URCU_UATOMIC_GENERIC_H
#define _URCU_UATOMIC_GENERIC_H

#include <stdint.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/system.h>
#include <urcu/uatomic/order.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Sizes that every CPU has besides long. */
#define UATOMIC_HAS_ATOMIC_INT
#if __SIZEOF_LONG__ == 8
#define UATOMIC_HAS_ATOMIC_LLONG
#endif

/*
 * Internal: the full fence next to a read-modify-write operation, and the orders of the operations
 * that are documented to order nothing.
 */
#ifndef _UATOMIC_FENCE
#define _UATOMIC_FENCE()	cmm_smp_mb()
#define _UATOMIC_UNORDERED	CMM_RELAXED
#define _UATOMIC_LOAD		CMM_RELAXED
#define _UATOMIC_STORE		CMM_RELAXED
#endif

/* The compiler's order for mo, a constant if mo is one; then that of a failed comparison. */
#define _uatomic_c11(mo)	((mo) == CMM_SEQ_CST_FENCE ? __ATOMIC_SEQ_CST : (int) (mo))
#define _uatomic_c11_failed(mo)								\
	((mo) == CMM_ACQ_REL ? __ATOMIC_ACQUIRE						\
		: (mo) == CMM_RELEASE ? __ATOMIC_RELAXED : _uatomic_c11(mo))
/* The fence of CMM_SEQ_CST_FENCE next to a read-modify-write; then next to a load or a store. */
#define _uatomic_fence(mo)								\
	do { if ((mo) == CMM_SEQ_CST_FENCE) _UATOMIC_FENCE(); } while (0)
#define _uatomic_fence_plain(mo)							\
	do { if ((mo) == CMM_SEQ_CST_FENCE) cmm_smp_mb(); } while (0)

/*
 * The fence of CMM_SEQ_CST_FENCE after one of the program's own atomic operations, whose order is
 * cmm_to_c11(mo). Does nothing for other orders.
 */
static __inline__ void cmm_seq_cst_fence_after_atomic(enum cmm_memorder mo)
{
	if (mo == CMM_SEQ_CST_FENCE)
		cmm_smp_mb();
}

/* The type that addr points to, without const and volatile; v converted to that type. */
#define _uatomic_type(addr)	__typeof__(__atomic_load_n((addr), __ATOMIC_RELAXED))
#define _uatomic_as(addr, v)	((_uatomic_type(addr)) caa_cast_long_keep_sign(v))

#define uatomic_load_mo(addr, mo)						\
	__extension__ ({							\
		_uatomic_type(addr) __uatomic_seen;				\
		_uatomic_fence_plain(mo);					\
		__uatomic_seen = __atomic_load_n((addr), _uatomic_c11(mo));	\
		_uatomic_fence_plain(mo);					\
		__uatomic_seen;							\
	})

#define uatomic_store_mo(addr, v, mo)						\
	__extension__ ({							\
		_uatomic_fence_plain(mo);					\
		__atomic_store_n((addr), (v), _uatomic_c11(mo));		\
		_uatomic_fence_plain(mo);					\
	})

#define uatomic_xchg_mo(addr, v, mo)						\
	__extension__ ({							\
		_uatomic_type(addr) __uatomic_found;				\
		_uatomic_fence(mo);						\
		__uatomic_found = __atomic_exchange_n((addr), _uatomic_as((addr), (v)),	\
				_uatomic_c11(mo));				\
		_uatomic_fence(mo);						\
		__uatomic_found;						\
	})

/* mos is the order of a success, mof that of a failure. */
#define uatomic_cmpxchg_mo(addr, old, _new, mos, mof)				\
	__extension__ ({							\
		_uatomic_type(addr) __uatomic_found = _uatomic_as((addr), (old));	\
		_uatomic_fence(mos);						\
		(void) __atomic_compare_exchange_n((addr), &__uatomic_found,	\
				_uatomic_as((addr), (_new)), 0,			\
				_uatomic_c11(mos), _uatomic_c11_failed(mof));	\
		_uatomic_fence(mos);						\
		__uatomic_found;						\
	})

#define uatomic_add_return_mo(addr, v, mo)					\
	__extension__ ({							\
		_uatomic_type(addr) __uatomic_now;				\
		_uatomic_fence(mo);						\
		__uatomic_now = __atomic_add_fetch((addr), caa_cast_long_keep_sign(v),	\
				_uatomic_c11(mo));				\
		_uatomic_fence(mo);						\
		__uatomic_now;							\
	})
#define uatomic_sub_return_mo(addr, v, mo) \
	uatomic_add_return_mo((addr), -caa_cast_long_keep_sign(v), (mo))

#define uatomic_add_mo(addr, v, mo)						\
	__extension__ ({							\
		_uatomic_fence(mo);						\
		(void) __atomic_fetch_add((addr), caa_cast_long_keep_sign(v), _uatomic_c11(mo));	\
		_uatomic_fence(mo);						\
	})
#define uatomic_sub_mo(addr, v, mo)	uatomic_add_mo((addr), -caa_cast_long_keep_sign(v), (mo))
#define uatomic_inc_mo(addr, mo)	uatomic_add_mo((addr), 1, (mo))
#define uatomic_dec_mo(addr, mo)	uatomic_sub_mo((addr), 1, (mo))

/*
 * AND and OR are also for pointers, whose low bits may be flags. So they operate on an integer of
 * the same size, whose type may alias any other.
 */
typedef uint8_t __attribute__((__may_alias__)) _uatomic_1;
typedef uint16_t __attribute__((__may_alias__)) _uatomic_2;
typedef uint32_t __attribute__((__may_alias__)) _uatomic_4;
typedef unsigned long __attribute__((__may_alias__)) _uatomic_long;

static __inline__ void _uatomic_and(volatile void *addr, unsigned long val, int len, int mo)
{
	if (len == 1)
		__atomic_fetch_and((volatile _uatomic_1 *) addr, (uint8_t) val, mo);
	else if (len == 2)
		__atomic_fetch_and((volatile _uatomic_2 *) addr, (uint16_t) val, mo);
	else if (len == 4)
		__atomic_fetch_and((volatile _uatomic_4 *) addr, (uint32_t) val, mo);
	else
		__atomic_fetch_and((volatile _uatomic_long *) addr, val, mo);
}

static __inline__ void _uatomic_or(volatile void *addr, unsigned long val, int len, int mo)
{
	if (len == 1)
		__atomic_fetch_or((volatile _uatomic_1 *) addr, (uint8_t) val, mo);
	else if (len == 2)
		__atomic_fetch_or((volatile _uatomic_2 *) addr, (uint16_t) val, mo);
	else if (len == 4)
		__atomic_fetch_or((volatile _uatomic_4 *) addr, (uint32_t) val, mo);
	else
		__atomic_fetch_or((volatile _uatomic_long *) addr, val, mo);
}

/* The size of what addr points to; does not compile if there are no operations of that size. */
#define _uatomic_size(addr)							\
	((int) (sizeof(*(addr)) + CAA_BUILD_BUG_ON_ZERO(sizeof(*(addr)) != 1 && sizeof(*(addr)) != 2	\
			&& sizeof(*(addr)) != 4 && sizeof(*(addr)) != sizeof(long))))

#define uatomic_and_mo(addr, v, mo)						\
	__extension__ ({							\
		_uatomic_fence(mo);						\
		_uatomic_and((addr), caa_cast_long_keep_sign(v), _uatomic_size(addr),	\
				_uatomic_c11(mo));				\
		_uatomic_fence(mo);						\
	})
#define uatomic_or_mo(addr, v, mo)						\
	__extension__ ({							\
		_uatomic_fence(mo);						\
		_uatomic_or((addr), caa_cast_long_keep_sign(v), _uatomic_size(addr),	\
				_uatomic_c11(mo));				\
		_uatomic_fence(mo);						\
	})

/* Full fences before and after the operation of that name, which orders nothing itself. */
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

#include <urcu/uatomic/api.h>

#endif
