/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Publication: pointers that updaters change while readers follow them.
 *
 * All are inlined in every program, and none blocks. The functions below are for callers that have
 * no macros, such as other languages; each library has them.
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

/*
 * Returns the current value of p, for reading the object that it points to: inside a section, in
 * which the object stays valid. Everything written before p was published is visible.
 */
#define rcu_dereference(p)			_rcu_dereference(p)

/* Publishes v in p: readers that load p with rcu_dereference() see all earlier writes to *v. */
#define rcu_assign_pointer(p, v)		rcu_set_pointer(&(p), (v))

/* The same with p's address. */
#define rcu_set_pointer(p, v)			_rcu_set_pointer((p), (v))

/* The same, and returns what was there before. A full fence before and after. */
#define rcu_xchg_pointer(p, v)			_rcu_xchg_pointer((p), (v))

/*
 * The same if old is there; else nothing. Returns what was there before: old, if it has published.
 * A full fence before and after.
 */
#define rcu_cmpxchg_pointer(p, old, _new)	_rcu_cmpxchg_pointer((p), (old), (_new))

/*
 * The same as functions. rcu_dereference_sym() takes p as it was loaded, and returns it; the others
 * take p's address. rcu_set_pointer_sym() returns v. rcu_dereference_sym2() is not in liburcu up to
 * 0.15.
 */
extern void *rcu_dereference_sym(void *p);
extern void *rcu_dereference_sym2(void **p);
extern void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *_new);
extern void *rcu_xchg_pointer_sym(void **p, void *v);
extern void *rcu_set_pointer_sym(void **p, void *v);

#ifdef __cplusplus
}
#endif

#endif
