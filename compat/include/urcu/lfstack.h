/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A stack of structures with embedded links, lock-free on both sides. Popping compares
 * an address that may come back (ABA); one of these has to hold, and programs choose it by the
 * functions they call:
 *
 *	pop inside a section, and elements are reused only after a grace period
 *	pop under a lock: cds_lfs_pop_blocking(), or __cds_lfs_pop() between cds_lfs_pop_lock() and _unlock()
 *	one thread alone pops
 *	all pop everything at once, by __cds_lfs_pop_all()
 */
#ifndef _URCU_LFSTACK_H
#define _URCU_LFSTACK_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <urcu/assert.h>
#include <urcu/static/either.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An element's link: a member of the structure that is pushed. */
struct cds_lfs_node {
	struct cds_lfs_node *next;
};

/* The elements taken all at once: the first of them. */
struct cds_lfs_head {
	struct cds_lfs_node node;
};

/* A stack, without a lock; then with one. */
struct __cds_lfs_stack {
	struct cds_lfs_head *head;
};

struct cds_lfs_stack {
	struct cds_lfs_head *head;
	pthread_mutex_t lock;
};

/*
 * A pointer to either stack: functions that take one are called with the address of one or the
 * other. The second is for functions that change nothing (liburcu has it since 0.15).
 */
_URCU_EITHER(cds_lfs_stack, s)

/* Prepares an element; to be called before it is pushed. Does not block. */
extern void cds_lfs_node_init(struct cds_lfs_node *node);

/* Initialise and destroy a stack with a lock. Destroy it only when no thread uses it. */
extern void cds_lfs_init(struct cds_lfs_stack *s);
extern void cds_lfs_destroy(struct cds_lfs_stack *s);

/* Initialises a stack without a lock, which need not be destroyed. */
extern void __cds_lfs_init(struct __cds_lfs_stack *s);

/* Returns whether the stack is empty at this moment. By any thread, under no lock; never blocks. */
extern bool cds_lfs_empty(cds_lfs_stack_const_ptr_t s);

/*
 * Pushes an element. Returns false if the stack was empty before. Lock-free, by any thread, under
 * no lock. A full fence comes first: what was written before is seen by the thread that pops it.
 */
extern bool cds_lfs_push(cds_lfs_stack_ptr_t s, struct cds_lfs_node *node);

/*
 * Takes the element that was pushed last and returns it, or NULL; under the stack's lock. Blocks.
 */
extern struct cds_lfs_node *cds_lfs_pop_blocking(struct cds_lfs_stack *s);

/* Takes all elements and returns them, or NULL; under the stack's lock. Blocks. */
extern struct cds_lfs_head *cds_lfs_pop_all_blocking(struct cds_lfs_stack *s);

/* Lock and unlock the stack's mutex, which excludes other threads that pop. */
extern void cds_lfs_pop_lock(struct cds_lfs_stack *s);
extern void cds_lfs_pop_unlock(struct cds_lfs_stack *s);

/*
 * The same without the lock, and without blocking: the first is lock-free, in one of the ways that
 * the list above has; the second is wait-free.
 */
extern struct cds_lfs_node *__cds_lfs_pop(cds_lfs_stack_ptr_t s);
extern struct cds_lfs_head *__cds_lfs_pop_all(cds_lfs_stack_ptr_t s);

/*
 * Loops over elements that were taken all at once: __node points to each in turn. In the _safe loop
 * the body may free or reuse __node; __n is a second variable of the same type, which the loop
 * uses.
 */
#define cds_lfs_for_each(__head, __node)						\
	for (__node = (struct cds_lfs_node *) (__head); __node != NULL; __node = (__node)->next)

#define cds_lfs_for_each_safe(__head, __node, __n)					\
	_URCU_FOR_EACH_SAFE(__node, __n, (struct cds_lfs_node *) (__head), (__node)->next)

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/lfstack.h>
#endif

#endif
