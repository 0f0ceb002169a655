/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A stack of structures with embedded links. Pushing is wait-free: one exchange.
 * Threads that pop must exclude each other: with cds_wfs_pop_lock() and the functions of
 * cds_wfs_stack, or with a lock of the caller's own; taking all elements at once needs none, if no
 * thread pops single elements meanwhile.
 *
 * "Blocking" functions wait for an element that is only half pushed; "nonblocking" ones return
 * CDS_WFS_WOULDBLOCK instead. Functions with two underscores take either stack; their caller
 * ensures mutual exclusion.
 */
#ifndef _URCU_WFSTACK_H
#define _URCU_WFSTACK_H

#include <pthread.h>
#include <stdbool.h>
#include <urcu/assert.h>
#include <urcu/static/either.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a nonblocking function returns if the blocking one would wait. */
#define CDS_WFS_WOULDBLOCK	((void *) -1UL)

/* Flags of *state: the element popped was the last one. */
enum cds_wfs_state {
	CDS_WFS_STATE_LAST = (1U << 0)
};

/* An element's link: a member of the structure that is pushed. */
struct cds_wfs_node {
	struct cds_wfs_node *next;
};

/* The elements taken all at once, to be walked with cds_wfs_first() and _next. */
struct cds_wfs_head {
	struct cds_wfs_node node;
};

/* A stack, without a lock; then with one. */
struct __cds_wfs_stack {
	struct cds_wfs_head *head;
};

struct cds_wfs_stack {
	struct cds_wfs_head *head;
	pthread_mutex_t lock;
};

/*
 * A pointer to either stack: functions that take one are called with the address of one or the
 * other. The second is for functions that change nothing (liburcu has it since 0.15).
 */
_URCU_EITHER(cds_wfs_stack, s)

/* Prepares an element; to be called before it is pushed. Does not block. */
extern void cds_wfs_node_init(struct cds_wfs_node *node);

/* Initialise and destroy a stack with a lock. Destroy it only when no thread uses it. */
extern void cds_wfs_init(struct cds_wfs_stack *s);
extern void cds_wfs_destroy(struct cds_wfs_stack *s);

/* Initialises a stack without a lock, which need not be destroyed. */
extern void __cds_wfs_init(struct __cds_wfs_stack *s);

/* Returns whether the stack is empty at this moment. By any thread, under no lock; never blocks. */
extern bool cds_wfs_empty(cds_wfs_stack_const_ptr_t u_stack);

/*
 * Pushes an element. Returns 0 if the stack was empty before. Wait-free, by any thread, under no
 * lock. A full fence comes first: what was written before is seen by the thread that pops it.
 */
extern int cds_wfs_push(cds_wfs_stack_ptr_t u_stack, struct cds_wfs_node *node);

/*
 * Take the element that was pushed last and return it, or NULL; they take the stack's lock.
 * The second one sets *state if no other element was left (CDS_WFS_STATE_LAST).
 * Block.
 */
extern struct cds_wfs_node *cds_wfs_pop_blocking(struct cds_wfs_stack *s);
extern struct cds_wfs_node *cds_wfs_pop_with_state_blocking(struct cds_wfs_stack *s, int *state);

/* Takes all elements and returns them, or NULL; under the stack's lock, which it takes. */
extern struct cds_wfs_head *cds_wfs_pop_all_blocking(struct cds_wfs_stack *s);

/*
 * Walk the elements taken all at once: return the first one, and the one after node, or
 * NULL. No other thread has them. The nonblocking one returns CDS_WFS_WOULDBLOCK if the other
 * would wait.
 */
extern struct cds_wfs_node *cds_wfs_first(struct cds_wfs_head *head);
extern struct cds_wfs_node *cds_wfs_next_blocking(struct cds_wfs_node *node);
extern struct cds_wfs_node *cds_wfs_next_nonblocking(struct cds_wfs_node *node);

/* Lock and unlock the stack's mutex, which excludes other threads that pop. */
extern void cds_wfs_pop_lock(struct cds_wfs_stack *s);
extern void cds_wfs_pop_unlock(struct cds_wfs_stack *s);

/*
 * The same without the lock: the caller ensures that no other thread pops. The blocking ones
 * wait for an element that is only half pushed; the others return CDS_WFS_WOULDBLOCK then.
 */
extern struct cds_wfs_node *__cds_wfs_pop_blocking(cds_wfs_stack_ptr_t u_stack);
extern struct cds_wfs_node *__cds_wfs_pop_with_state_blocking(cds_wfs_stack_ptr_t u_stack, int *state);
extern struct cds_wfs_node *__cds_wfs_pop_nonblocking(cds_wfs_stack_ptr_t u_stack);
extern struct cds_wfs_node *__cds_wfs_pop_with_state_nonblocking(cds_wfs_stack_ptr_t u_stack, int *state);
extern struct cds_wfs_head *__cds_wfs_pop_all(cds_wfs_stack_ptr_t u_stack);

/*
 * Loops over elements that were taken all at once: node points to each in turn. In the _safe loop
 * the body may free or reuse node; n is a second variable of the same type, which the loop uses.
 */
#define cds_wfs_for_each_blocking(head, node)						\
	for (node = cds_wfs_first(head); node != NULL; node = cds_wfs_next_blocking(node))

#define cds_wfs_for_each_blocking_safe(head, node, n)					\
	_URCU_FOR_EACH_SAFE(node, n, cds_wfs_first(head), cds_wfs_next_blocking(node))

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/wfstack.h>
#endif

#endif
