/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The atomic operations. addr is the address of an integer or a pointer with the size of 1, 2 or 4
 * bytes or of a long. v is an integer or a pointer, whatever the type at addr. An optional last
 * argument, an enum cmm_memorder, is the memory order (in liburcu since 0.15). None of these
 * operations blocks; all may be used in signal handlers.
 *
 *	operation			returns			orders by default
 *	uatomic_load(addr)		the value		nothing
 *	uatomic_store(addr, v)		nothing			nothing
 *	uatomic_xchg(addr, v)		the value before	full fence before and after
 *	uatomic_cmpxchg(addr, old, _new)	the value before	full fence before and after
 *	uatomic_add_return(addr, v)	the value after		full fence before and after
 *	uatomic_sub_return(addr, v)	the value after		full fence before and after
 *	uatomic_add, _sub, _inc, _dec	nothing			nothing
 *	uatomic_and, _or		nothing			nothing
 *
 * For an operation that orders nothing, cmm_smp_mb__before_uatomic_OPERATION() and
 * cmm_smp_mb__after_uatomic_OPERATION() are the cheapest full fences before and after it.
 */
#ifndef _URCU_UATOMIC_API_H
#define _URCU_UATOMIC_API_H

/* Keeps compilers with -Wpedantic from warning about the optional argument. */
#pragma GCC system_header

/*
 * Internal: the order that was given, otherwise dflt; then the second order that was given,
 * otherwise the first.
 */
#define _uatomic_second(a, b, ...)	b
#define _uatomic_third(__a, __b, __c, ...)	__c
#define _uatomic_order(dflt, ...)	_uatomic_second(_, ##__VA_ARGS__, dflt, _)
#define _uatomic_order_failed(dflt, ...) \
	_uatomic_third(_, ##__VA_ARGS__, _uatomic_order(dflt, ##__VA_ARGS__), dflt, _)

/* Reads the value at addr. uatomic_read() is the older name. */
#define uatomic_load(addr, ...) \
	uatomic_load_mo((addr), _uatomic_order(_UATOMIC_LOAD, ##__VA_ARGS__))
#define uatomic_read(addr, ...) \
	uatomic_load_mo((addr), _uatomic_order(_UATOMIC_LOAD, ##__VA_ARGS__))

/* Writes v to addr. uatomic_set() is the older name. */
#define uatomic_store(addr, v, ...) \
	uatomic_store_mo((addr), (v), _uatomic_order(_UATOMIC_STORE, ##__VA_ARGS__))
#define uatomic_set(addr, v, ...) \
	uatomic_store_mo((addr), (v), _uatomic_order(_UATOMIC_STORE, ##__VA_ARGS__))

/* Writes v to addr, and returns the previous value. */
#define uatomic_xchg(addr, v, ...) \
	uatomic_xchg_mo((addr), (v), _uatomic_order(CMM_SEQ_CST_FENCE, ##__VA_ARGS__))

/*
 * Writes _new to addr if the value there is old. Returns the previous value, which is old if it has
 * written. Two more arguments are the orders of success and of failure; a single one is for both.
 */
#define uatomic_cmpxchg(addr, old, _new, ...)					\
	uatomic_cmpxchg_mo((addr), (old), (_new),				\
			_uatomic_order(CMM_SEQ_CST_FENCE, ##__VA_ARGS__),	\
			_uatomic_order_failed(CMM_SEQ_CST_FENCE, ##__VA_ARGS__))

/* Add v to the value at addr, or subtract it, and return the result. */
#define uatomic_add_return(addr, v, ...) \
	uatomic_add_return_mo((addr), (v), _uatomic_order(CMM_SEQ_CST_FENCE, ##__VA_ARGS__))
#define uatomic_sub_return(addr, v, ...) \
	uatomic_sub_return_mo((addr), (v), _uatomic_order(CMM_SEQ_CST_FENCE, ##__VA_ARGS__))

/* The same, but return nothing. */
#define uatomic_add(addr, v, ...) \
	uatomic_add_mo((addr), (v), _uatomic_order(_UATOMIC_UNORDERED, ##__VA_ARGS__))
#define uatomic_sub(addr, v, ...) \
	uatomic_sub_mo((addr), (v), _uatomic_order(_UATOMIC_UNORDERED, ##__VA_ARGS__))

/* Add or subtract 1. */
#define uatomic_inc(addr, ...) \
	uatomic_inc_mo((addr), _uatomic_order(_UATOMIC_UNORDERED, ##__VA_ARGS__))
#define uatomic_dec(addr, ...) \
	uatomic_dec_mo((addr), _uatomic_order(_UATOMIC_UNORDERED, ##__VA_ARGS__))

/* Clear the bits at addr that are 0 in mask, or set those that are 1. Also for pointers. */
#define uatomic_and(addr, mask, ...) \
	uatomic_and_mo((addr), (mask), _uatomic_order(_UATOMIC_UNORDERED, ##__VA_ARGS__))
#define uatomic_or(addr, mask, ...) \
	uatomic_or_mo((addr), (mask), _uatomic_order(_UATOMIC_UNORDERED, ##__VA_ARGS__))

#endif
