/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A queue of structures with embedded links. Adding an element is wait-free: one exchange. Threads
 * that take elements must exclude each other: with cds_wfcq_dequeue_lock() and the functions of
 * cds_wfcq_head, which contains a lock, or with a lock of the caller's own. cds_wfcq_enqueue() and
 * cds_wfcq_empty() never need one. Head and tail are separate, so they can be on different lines.
 *
 * "Blocking" functions wait for an element that is only half added; "nonblocking" ones return
 * CDS_WFCQ_WOULDBLOCK instead. Functions with two underscores take either head; their caller
 * ensures mutual exclusion.
 */
#ifndef _URCU_WFCQUEUE_H
#define _URCU_WFCQUEUE_H

#include <pthread.h>
#include <stdbool.h>
#include <urcu/arch.h>
#include <urcu/assert.h>
#include <urcu/static/either.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What a nonblocking function returns if the blocking one would wait. */
#define CDS_WFCQ_WOULDBLOCK	((struct cds_wfcq_node *) -1UL)

/* The result of a splice: the source was empty; the destination was, or was not. */
enum cds_wfcq_ret {
	CDS_WFCQ_RET_WOULDBLOCK = -1,
	CDS_WFCQ_RET_DEST_EMPTY = 0,
	CDS_WFCQ_RET_DEST_NON_EMPTY = 1,
	CDS_WFCQ_RET_SRC_EMPTY = 2
};

/* Flags of *state: the element taken was the last one. */
enum cds_wfcq_state {
	CDS_WFCQ_STATE_LAST = (1U << 0)
};

/* An element's link: a member of the structure that is queued. */
struct cds_wfcq_node {
	struct cds_wfcq_node *next;
};

/* A queue's head, without a lock; then with one. */
struct __cds_wfcq_head {
	struct cds_wfcq_node node;
};

struct cds_wfcq_head {
	struct cds_wfcq_node node;
	pthread_mutex_t lock;
};

/* A queue's tail. */
struct cds_wfcq_tail {
	struct cds_wfcq_node *p;
};

/*
 * A pointer to either head: functions that take one are called with the address of one or the
 * other. The second is for functions that change nothing (liburcu has it since 0.15).
 */
_URCU_EITHER(cds_wfcq_head, h)

/* Prepares an element; to be called before it is added. Does not block. */
extern void cds_wfcq_node_init(struct cds_wfcq_node *node);

/*
 * Initialise and destroy a queue with a lock. Destroy it only when it is empty and no thread uses
 * it.
 */
extern void cds_wfcq_init(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);
extern void cds_wfcq_destroy(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);

/* Initialises a queue without a lock, which need not be destroyed. */
extern void __cds_wfcq_init(struct __cds_wfcq_head *head, struct cds_wfcq_tail *tail);

/* Returns whether the queue is empty at this moment. By any thread, under no lock; never blocks. */
extern bool cds_wfcq_empty(cds_wfcq_head_const_ptr_t head, const struct cds_wfcq_tail *tail);

/*
 * Adds an element at the end. Returns false if the queue was empty before. Wait-free, by any
 * thread, under no lock. A full fence comes first: the thread that takes the element sees
 * everything written before.
 */
extern bool cds_wfcq_enqueue(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail,
		struct cds_wfcq_node *node);

/* Lock and unlock the head's mutex, which excludes other threads that take or walk. */
extern void cds_wfcq_dequeue_lock(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);
extern void cds_wfcq_dequeue_unlock(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);

/*
 * Take the first element and return it, or NULL; they take the head's lock. The
 * second one sets *state if it was the last element (CDS_WFCQ_STATE_LAST). Block.
 */
extern struct cds_wfcq_node *cds_wfcq_dequeue_blocking(struct cds_wfcq_head *head,
		struct cds_wfcq_tail *tail);
extern struct cds_wfcq_node *cds_wfcq_dequeue_with_state_blocking(struct cds_wfcq_head *head,
		struct cds_wfcq_tail *tail, int *state);

/*
 * Moves all of the source to the end of the destination, under the source's lock, which it takes.
 * Returns what it has done, never CDS_WFCQ_RET_WOULDBLOCK. Blocks.
 */
extern enum cds_wfcq_ret cds_wfcq_splice_blocking(struct cds_wfcq_head *dest_q_head,
		struct cds_wfcq_tail *dest_q_tail, struct cds_wfcq_head *src_q_head,
		struct cds_wfcq_tail *src_q_tail);

/*
 * The same without the lock: the caller ensures that no other thread takes from the queue or
 * walks it. The blocking ones wait for an element that is only half added; the others return
 * CDS_WFCQ_WOULDBLOCK then, or CDS_WFCQ_RET_WOULDBLOCK.
 */
extern struct cds_wfcq_node *__cds_wfcq_dequeue_blocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail);
extern struct cds_wfcq_node *__cds_wfcq_dequeue_with_state_blocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail, int *state);
extern struct cds_wfcq_node *__cds_wfcq_dequeue_nonblocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail);
extern struct cds_wfcq_node *__cds_wfcq_dequeue_with_state_nonblocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail, int *state);
extern enum cds_wfcq_ret __cds_wfcq_splice_blocking(cds_wfcq_head_ptr_t dest_q_head,
		struct cds_wfcq_tail *dest_q_tail, cds_wfcq_head_ptr_t src_q_head,
		struct cds_wfcq_tail *src_q_tail);
extern enum cds_wfcq_ret __cds_wfcq_splice_nonblocking(cds_wfcq_head_ptr_t dest_q_head,
		struct cds_wfcq_tail *dest_q_tail, cds_wfcq_head_ptr_t src_q_head,
		struct cds_wfcq_tail *src_q_tail);

/*
 * Walk without taking: return the first element, and the one after node, or NULL. The caller
 * ensures that no thread takes anything meanwhile.
 */
extern struct cds_wfcq_node *__cds_wfcq_first_blocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail);
extern struct cds_wfcq_node *__cds_wfcq_first_nonblocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail);
extern struct cds_wfcq_node *__cds_wfcq_next_blocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail, struct cds_wfcq_node *node);
extern struct cds_wfcq_node *__cds_wfcq_next_nonblocking(cds_wfcq_head_ptr_t head,
		struct cds_wfcq_tail *tail, struct cds_wfcq_node *node);

/*
 * Loops over the elements of a queue: node points to each in turn, from the first on. In the _safe
 * loop the body may free or reuse node; n is a second variable of the same type, which the loop
 * uses.
 */
#define __cds_wfcq_for_each_blocking(head, tail, node)					\
	for (node = __cds_wfcq_first_blocking((head), (tail)); node != NULL;		\
			node = __cds_wfcq_next_blocking((head), (tail), (node)))

#define __cds_wfcq_for_each_blocking_safe(head, tail, node, n)				\
	_URCU_FOR_EACH_SAFE(node, n, __cds_wfcq_first_blocking((head), (tail)),		\
			__cds_wfcq_next_blocking((head), (tail), (node)))

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/wfcqueue.h>
#endif

#endif
