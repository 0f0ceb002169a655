/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Publication: pointers that updaters change while readers follow them.
 *
 *	rcu_dereference(p)			p, now; for reading what it points to, inside a section
 *	rcu_assign_pointer(p, v)		p = v, once what v points to has been written
 *	rcu_set_pointer(&p, v)			the same, with p's address
 *	rcu_xchg_pointer(&p, v)			the same; answers what p was before
 *	rcu_cmpxchg_pointer(&p, old, _new)	the same if p was old; answers what p was before
 *
 * The last two are full fences, on either side. All are inlined in every program; the functions are
 * for those that cannot, such as other languages, and each library has them.
 */
#ifndef _URCU_POINTER_H
#define _URCU_POINTER_H

#include <urcu/arch.h>
#include <urcu/compiler.h>
#include <urcu/static/pointer.h>
#include <urcu/uatomic.h>

#ifdef __cplusplus
extern "C" {
#endif

#define rcu_dereference(p)			_rcu_dereference(p)
#define rcu_cmpxchg_pointer(p, old, _new)	_rcu_cmpxchg_pointer((p), (old), (_new))
#define rcu_xchg_pointer(p, v)			_rcu_xchg_pointer((p), (v))
#define rcu_set_pointer(p, v)			_rcu_set_pointer((p), (v))
#define rcu_assign_pointer(p, v)		rcu_set_pointer(&(p), (v))

/* p as loaded already; the others take p's address. rcu_set_pointer_sym answers v. */
extern void *rcu_dereference_sym(void *p);
extern void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *_new);
extern void *rcu_xchg_pointer_sym(void **p, void *v);
extern void *rcu_set_pointer_sym(void **p, void *v);

#ifdef __cplusplus
}
#endif

#endif
