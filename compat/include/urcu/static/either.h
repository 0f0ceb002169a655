/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For structures that exist with a lock (struct NAME) and without one (struct __NAME): a type for a
 * pointer to either. A function with such a parameter is called with the address of one or the
 * other. And a loop over elements.
 *
 * _URCU_EITHER(NAME, s) defines NAME_ptr_t, with members _s and s; NAME_const_ptr_t, for functions
 * that change nothing (in liburcu since 0.15); and conversions such as NAME_cast(), which return
 * their argument. C++ needs them with liburcu's own headers, so programs for C and C++ call them.
 */
#ifndef _URCU_STATIC_EITHER_H
#define _URCU_STATIC_EITHER_H

#define _URCU_CAST(__to, __function, __from)							\
	static __inline__ __to __function(__from __it)						\
	{											\
		return __it;									\
	}

#ifdef __cplusplus
#define _URCU_EITHER(__name, __member)								\
	union __name##_ptr_t {									\
		struct __##__name *_##__member;							\
		struct __name *__member;							\
		__name##_ptr_t() : _##__member(0) {}						\
		__name##_ptr_t(struct __##__name *__it) : _##__member(__it) {}			\
		__name##_ptr_t(struct __name *__it) : __member(__it) {}				\
	};											\
	union __name##_const_ptr_t {								\
		const struct __##__name *_##__member;						\
		const struct __name *__member;							\
		__name##_const_ptr_t() : _##__member(0) {}					\
		__name##_const_ptr_t(const struct __##__name *__it) : _##__member(__it) {}	\
		__name##_const_ptr_t(const struct __name *__it) : __member(__it) {}		\
		__name##_const_ptr_t(__name##_ptr_t __it) : _##__member(__it._##__member) {}	\
	};											\
	extern "C++" {										\
	_URCU_CAST(__name##_ptr_t, __##__name##_cast, struct __##__name *)			\
	_URCU_CAST(__name##_ptr_t, __name##_cast, struct __name *)				\
	_URCU_CAST(__name##_ptr_t, __name##_cast, struct __##__name *)				\
	_URCU_CAST(__name##_const_ptr_t, __##__name##_const_cast, const struct __##__name *)	\
	_URCU_CAST(__name##_const_ptr_t, __name##_const_cast, const struct __name *)		\
	_URCU_CAST(__name##_const_ptr_t, __name##_const_cast, const struct __##__name *)	\
	}
#else
#define _URCU_EITHER(__name, __member)								\
	typedef union {										\
		struct __##__name *_##__member;							\
		struct __name *__member;							\
	} __attribute__((__transparent_union__)) __name##_ptr_t;				\
	typedef union {										\
		const struct __##__name *_##__member;						\
		const struct __name *__member;							\
		/* A variable of the type above, as code for liburcu 0.13 may pass. */		\
		__name##_ptr_t __any;								\
	} __attribute__((__transparent_union__)) __name##_const_ptr_t;				\
	_URCU_CAST(struct __##__name *, __##__name##_cast, struct __##__name *)			\
	_URCU_CAST(struct __name *, __name##_cast, struct __name *)				\
	_URCU_CAST(const struct __##__name *, __##__name##_const_cast, const struct __##__name *) \
	_URCU_CAST(const struct __name *, __name##_const_cast, const struct __name *)
#endif

/* A loop whose body may remove or free __node: it finds the next one, __n, before the body runs. */
#define _URCU_FOR_EACH_SAFE(__node, __n, __first, __next)					\
	for (__node = (__first); __node != NULL && ((__n = (__next)), 1); __node = (__n))

#endif
