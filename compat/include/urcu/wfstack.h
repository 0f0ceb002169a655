/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A stack of structures that hold their links themselves. Pushing is wait-free: one exchange.
 * Popping needs mutual exclusion among those who pop: cds_wfs_pop_lock() and the functions of
 * cds_wfs_stack, or the caller's own; taking all at once needs none, if no thread pops one by one
 * meanwhile.
 *
 * "Blocking": an element whose pushing is half done is waited for. "Nonblocking":
 * CDS_WFS_WOULDBLOCK instead. Two underscores: for either stack, and the caller sees to mutual
 * exclusion.
 */
#ifndef _URCU_WFSTACK_H
#define _URCU_WFSTACK_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CDS_WFS_WOULDBLOCK	((void *) -1UL)

/* Flags of *state: the element popped was the last one. */
enum cds_wfs_state {
	CDS_WFS_STATE_LAST = (1U << 0)
};

struct cds_wfs_node {
	struct cds_wfs_node *next;
};

/* What has been taken all at once. */
struct cds_wfs_head {
	struct cds_wfs_node node;
};

/* Without a lock, and with one. */
struct __cds_wfs_stack {
	struct cds_wfs_head *head;
};

struct cds_wfs_stack {
	struct cds_wfs_head *head;
	pthread_mutex_t lock;
};

/* A pointer to either stack: functions that take it are called with one or the other. */
#ifdef __cplusplus
union cds_wfs_stack_ptr_t {
	struct __cds_wfs_stack *_s;
	struct cds_wfs_stack *s;

	cds_wfs_stack_ptr_t() : _s(0) {}
	cds_wfs_stack_ptr_t(struct __cds_wfs_stack *__stack) : _s(__stack) {}
	cds_wfs_stack_ptr_t(struct cds_wfs_stack *__stack) : s(__stack) {}
};
#else
typedef union {
	struct __cds_wfs_stack *_s;
	struct cds_wfs_stack *s;
} __attribute__((__transparent_union__)) cds_wfs_stack_ptr_t;
#endif

/* Begin and end. A stack without a lock needs no end. */
extern void cds_wfs_node_init(struct cds_wfs_node *node);
extern void cds_wfs_init(struct cds_wfs_stack *s);
extern void cds_wfs_destroy(struct cds_wfs_stack *s);
extern void __cds_wfs_init(struct __cds_wfs_stack *s);

extern bool cds_wfs_empty(cds_wfs_stack_ptr_t u_stack);

/* Answers 0 if the stack was empty. A full fence comes first. */
extern int cds_wfs_push(cds_wfs_stack_ptr_t u_stack, struct cds_wfs_node *node);

/* The last one pushed, taken out, or NULL; under the stack's lock, which they take. */
extern struct cds_wfs_node *cds_wfs_pop_blocking(struct cds_wfs_stack *s);
extern struct cds_wfs_node *cds_wfs_pop_with_state_blocking(struct cds_wfs_stack *s, int *state);

/* All there is, or NULL: to be walked by the functions below. */
extern struct cds_wfs_head *cds_wfs_pop_all_blocking(struct cds_wfs_stack *s);

/* Walking what has been taken: its first element, and the one after node, or NULL. */
extern struct cds_wfs_node *cds_wfs_first(struct cds_wfs_head *head);
extern struct cds_wfs_node *cds_wfs_next_blocking(struct cds_wfs_node *node);
extern struct cds_wfs_node *cds_wfs_next_nonblocking(struct cds_wfs_node *node);

extern void cds_wfs_pop_lock(struct cds_wfs_stack *s);
extern void cds_wfs_pop_unlock(struct cds_wfs_stack *s);

/* The same, and the caller sees to mutual exclusion. */
extern struct cds_wfs_node *__cds_wfs_pop_blocking(cds_wfs_stack_ptr_t u_stack);
extern struct cds_wfs_node *__cds_wfs_pop_with_state_blocking(cds_wfs_stack_ptr_t u_stack, int *state);
extern struct cds_wfs_node *__cds_wfs_pop_nonblocking(cds_wfs_stack_ptr_t u_stack);
extern struct cds_wfs_node *__cds_wfs_pop_with_state_nonblocking(cds_wfs_stack_ptr_t u_stack, int *state);
extern struct cds_wfs_head *__cds_wfs_pop_all(cds_wfs_stack_ptr_t u_stack);

/*
 * Each element taken, in turn. In the one with _safe the body may do with node what it likes; n is
 * the loop's own.
 */
#define cds_wfs_for_each_blocking(head, node)						\
	for (node = cds_wfs_first(head); node != NULL; node = cds_wfs_next_blocking(node))

#define cds_wfs_for_each_blocking_safe(head, node, n)					\
	for (node = cds_wfs_first(head);						\
			node != NULL && ((n = cds_wfs_next_blocking(node)), 1);		\
			node = (n))

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/wfstack.h>
#endif

#endif
