/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A queue of structures that hold their links themselves. Adding is wait-free: one exchange. Taking
 * needs mutual exclusion among those who take: cds_wfcq_dequeue_lock() and the functions of
 * cds_wfcq_head with a lock in it, or the caller's own. cds_wfcq_enqueue() and cds_wfcq_empty()
 * need none, ever. Head and tail are apart so that they may lie on lines apart.
 *
 * "Blocking": an element whose adding is half done is waited for. "Nonblocking":
 * CDS_WFCQ_WOULDBLOCK instead. Two underscores: for either head, and the caller sees to mutual
 * exclusion.
 */
#ifndef _URCU_WFCQUEUE_H
#define _URCU_WFCQUEUE_H

#include <assert.h>
#include <pthread.h>
#include <stdbool.h>
#include <urcu/arch.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

#define CDS_WFCQ_WOULDBLOCK	((struct cds_wfcq_node *) -1UL)

/* What a splice has found. */
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

struct cds_wfcq_node {
	struct cds_wfcq_node *next;
};

/* Without a lock, and with one. */
struct __cds_wfcq_head {
	struct cds_wfcq_node node;
};

struct cds_wfcq_head {
	struct cds_wfcq_node node;
	pthread_mutex_t lock;
};

struct cds_wfcq_tail {
	struct cds_wfcq_node *p;
};

/* A pointer to either head: functions that take it are called with one or the other. */
#ifdef __cplusplus
union cds_wfcq_head_ptr_t {
	struct __cds_wfcq_head *_h;
	struct cds_wfcq_head *h;

	cds_wfcq_head_ptr_t() : _h(0) {}
	cds_wfcq_head_ptr_t(struct __cds_wfcq_head *head) : _h(head) {}
	cds_wfcq_head_ptr_t(struct cds_wfcq_head *head) : h(head) {}
};

static inline cds_wfcq_head_ptr_t __cds_wfcq_head_cast(struct __cds_wfcq_head *head)
{
	return head;
}

static inline cds_wfcq_head_ptr_t cds_wfcq_head_cast(struct cds_wfcq_head *head)
{
	return head;
}
#else
typedef union {
	struct __cds_wfcq_head *_h;
	struct cds_wfcq_head *h;
} __attribute__((__transparent_union__)) cds_wfcq_head_ptr_t;

/* C++ code written for liburcu's headers names the conversion. */
static __inline__ struct __cds_wfcq_head *__cds_wfcq_head_cast(struct __cds_wfcq_head *head)
{
	return head;
}

static __inline__ struct cds_wfcq_head *cds_wfcq_head_cast(struct cds_wfcq_head *head)
{
	return head;
}
#endif

/* Begin and end. A queue whose head has no lock needs no end. */
extern void cds_wfcq_node_init(struct cds_wfcq_node *node);
extern void cds_wfcq_init(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);
extern void cds_wfcq_destroy(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);
extern void __cds_wfcq_init(struct __cds_wfcq_head *head, struct cds_wfcq_tail *tail);

extern bool cds_wfcq_empty(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail);

/* At the end. Answers whether there was something in the queue before. A full fence comes first. */
extern bool cds_wfcq_enqueue(cds_wfcq_head_ptr_t head, struct cds_wfcq_tail *tail,
		struct cds_wfcq_node *node);

extern void cds_wfcq_dequeue_lock(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);
extern void cds_wfcq_dequeue_unlock(struct cds_wfcq_head *head, struct cds_wfcq_tail *tail);

/* The first element, taken out, or NULL; under the head's lock, which they take. */
extern struct cds_wfcq_node *cds_wfcq_dequeue_blocking(struct cds_wfcq_head *head,
		struct cds_wfcq_tail *tail);
extern struct cds_wfcq_node *cds_wfcq_dequeue_with_state_blocking(struct cds_wfcq_head *head,
		struct cds_wfcq_tail *tail, int *state);

/* All of the second queue to the end of the first; under the second one's lock, which it takes. */
extern enum cds_wfcq_ret cds_wfcq_splice_blocking(struct cds_wfcq_head *dest_q_head,
		struct cds_wfcq_tail *dest_q_tail, struct cds_wfcq_head *src_q_head,
		struct cds_wfcq_tail *src_q_tail);

/* The same, and the caller sees to mutual exclusion. */
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
 * Walking without taking: the first element, and the one after node, or NULL. No thread takes anything
 * meanwhile.
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
 * Each element in turn. In the one with _safe the body may do with node what it likes; n is the
 * loop's own.
 */
#define __cds_wfcq_for_each_blocking(head, tail, node)					\
	for (node = __cds_wfcq_first_blocking((head), (tail)); node != NULL;		\
			node = __cds_wfcq_next_blocking((head), (tail), (node)))

#define __cds_wfcq_for_each_blocking_safe(head, tail, node, n)				\
	for (node = __cds_wfcq_first_blocking((head), (tail));				\
			node != NULL							\
				&& ((n = __cds_wfcq_next_blocking((head), (tail), (node))), 1);	\
			node = (n))

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/wfcqueue.h>
#endif

#endif
