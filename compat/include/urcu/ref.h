/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Reference counts: the last thread to give its reference back frees the structure. None of these
 * blocks.
 */
#ifndef _URCU_REF_H
#define _URCU_REF_H

#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <urcu/assert.h>
#include <urcu/uatomic.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A count: a member of the structure that is counted. */
struct urcu_ref {
	long refcount;
};

/* Sets the count. No other thread has the structure yet. */
static __inline__ void urcu_ref_set(struct urcu_ref *ref, long val)
{
	uatomic_set(&ref->refcount, val);
}

/* Sets the count to one, the caller's. No other thread has the structure yet. */
static __inline__ void urcu_ref_init(struct urcu_ref *ref)
{
	urcu_ref_set(ref, 1);
}

/* For these headers' own use: one more, unless the count is bar or the largest there is. */
static __inline__ bool _urcu_ref_get_unless(struct urcu_ref *ref, long __bar)
{
	long count = uatomic_read(&ref->refcount), __found;

	for (; count != __bar && count != LONG_MAX; count = __found) {
		__found = uatomic_cmpxchg(&ref->refcount, count, count + 1);
		if (__found == count)
			return true;
	}
	return false;
}

/*
 * Takes one more, by a thread that has one already. Returns false, and takes none, if there are as
 * many as there can be.
 */
static __inline__ __attribute__((__warn_unused_result__)) bool urcu_ref_get_safe(struct urcu_ref *ref)
{
	return _urcu_ref_get_unless(ref, LONG_MAX);
}

/* The same; as many as there can be end the program. */
static __inline__ void urcu_ref_get(struct urcu_ref *ref)
{
	if (!urcu_ref_get_safe(ref))
		abort();
}

/*
 * Takes one, by a thread that has none, and knows only that the memory is still there: in a
 * section, say. Returns false, and takes none, if the last one was given back before.
 */
static __inline__ bool urcu_ref_get_unless_zero(struct urcu_ref *ref)
{
	return _urcu_ref_get_unless(ref, 0);
}

/* Gives one back. The last one calls release(ref), which frees the structure. */
static __inline__ void urcu_ref_put(struct urcu_ref *ref, void (*release)(struct urcu_ref *))
{
	long count = uatomic_sub_return(&ref->refcount, 1);

	assert(count >= 0);
	if (count == 0)
		release(ref);
}

#ifdef __cplusplus
}
#endif

#endif
