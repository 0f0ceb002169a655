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

/* Internal: adds one, unless the count is bar or the largest long. Returns whether it has added. */
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
 * Takes another reference, by a thread that already has one. Returns false, and takes none, if the
 * count is at its maximum.
 */
static __inline__ __attribute__((__warn_unused_result__)) bool urcu_ref_get_safe(struct urcu_ref *ref)
{
	return _urcu_ref_get_unless(ref, LONG_MAX);
}

/* The same; a count at its maximum ends the program. */
static __inline__ void urcu_ref_get(struct urcu_ref *ref)
{
	if (!urcu_ref_get_safe(ref))
		abort();
}

/*
 * Takes a reference, by a thread that has none and knows only that the memory is still valid, for
 * example in a section. Returns false, and takes none, if the last reference is gone.
 */
static __inline__ bool urcu_ref_get_unless_zero(struct urcu_ref *ref)
{
	return _urcu_ref_get_unless(ref, 0);
}

/* Drops a reference. The last drop calls release(ref), which frees the structure. */
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
