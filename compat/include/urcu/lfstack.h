/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A stack of structures that hold their links themselves, lock-free on both sides. Popping compares
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

#ifdef __cplusplus
extern "C" {
#endif

struct cds_lfs_node {
	struct cds_lfs_node *next;
};

/* What has been taken all at once. */
struct cds_lfs_head {
	struct cds_lfs_node node;
};

/* Without a lock, and with one. */
struct __cds_lfs_stack {
	struct cds_lfs_head *head;
};

struct cds_lfs_stack {
	struct cds_lfs_head *head;
	pthread_mutex_t lock;
};

/* A pointer to either stack: functions that take it are called with one or the other. */
#ifdef __cplusplus
union cds_lfs_stack_ptr_t {
	struct __cds_lfs_stack *_s;
	struct cds_lfs_stack *s;

	cds_lfs_stack_ptr_t() : _s(0) {}
	cds_lfs_stack_ptr_t(struct __cds_lfs_stack *__stack) : _s(__stack) {}
	cds_lfs_stack_ptr_t(struct cds_lfs_stack *__stack) : s(__stack) {}
};
#else
typedef union {
	struct __cds_lfs_stack *_s;
	struct cds_lfs_stack *s;
} __attribute__((__transparent_union__)) cds_lfs_stack_ptr_t;
#endif

/* Begin and end. A stack without a lock needs no end. */
extern void cds_lfs_node_init(struct cds_lfs_node *node);
extern void cds_lfs_init(struct cds_lfs_stack *s);
extern void cds_lfs_destroy(struct cds_lfs_stack *s);
extern void __cds_lfs_init(struct __cds_lfs_stack *s);

extern bool cds_lfs_empty(cds_lfs_stack_ptr_t s);

/* Answers whether there was something on the stack before. A full fence comes first. */
extern bool cds_lfs_push(cds_lfs_stack_ptr_t s, struct cds_lfs_node *node);

/* The last one pushed, or all, taken out, or NULL; under the stack's lock, which they take. */
extern struct cds_lfs_node *cds_lfs_pop_blocking(struct cds_lfs_stack *s);
extern struct cds_lfs_head *cds_lfs_pop_all_blocking(struct cds_lfs_stack *s);

extern void cds_lfs_pop_lock(struct cds_lfs_stack *s);
extern void cds_lfs_pop_unlock(struct cds_lfs_stack *s);

/* The same without the lock. */
extern struct cds_lfs_node *__cds_lfs_pop(cds_lfs_stack_ptr_t s);
extern struct cds_lfs_head *__cds_lfs_pop_all(cds_lfs_stack_ptr_t s);

/*
 * Each element taken, in turn. In the one with _safe the body may do with __node what it likes; __n
 * is the loop's own.
 */
#define cds_lfs_for_each(__head, __node)						\
	for (__node = (struct cds_lfs_node *) (__head); __node != NULL; __node = (__node)->next)

#define cds_lfs_for_each_safe(__head, __node, __n)					\
	for (__node = (struct cds_lfs_node *) (__head);					\
			__node != NULL && ((__n = (__node)->next), 1); __node = (__n))

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/lfstack.h>
#endif

#endif
