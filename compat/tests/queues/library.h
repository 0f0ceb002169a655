/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The library's functions under names of their own, for programs that have the inlined ones as well. A structure that is
 * passed as a union of pointers is declared as the headers do.
 */
#ifndef QUEUES_LIBRARY_H
#define QUEUES_LIBRARY_H

#define FROM_LIBRARY(type, name, ...) extern type library_##name(__VA_ARGS__) __asm__(#name)

FROM_LIBRARY(void, cds_wfcq_node_init, struct cds_wfcq_node *);
FROM_LIBRARY(void, cds_wfcq_init, struct cds_wfcq_head *, struct cds_wfcq_tail *);
FROM_LIBRARY(void, cds_wfcq_destroy, struct cds_wfcq_head *, struct cds_wfcq_tail *);
FROM_LIBRARY(bool, cds_wfcq_empty, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *);
FROM_LIBRARY(bool, cds_wfcq_enqueue, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *, struct cds_wfcq_node *);
FROM_LIBRARY(void, cds_wfcq_dequeue_lock, struct cds_wfcq_head *, struct cds_wfcq_tail *);
FROM_LIBRARY(void, cds_wfcq_dequeue_unlock, struct cds_wfcq_head *, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, cds_wfcq_dequeue_blocking, struct cds_wfcq_head *, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, cds_wfcq_dequeue_with_state_blocking, struct cds_wfcq_head *, struct cds_wfcq_tail *, int *);
FROM_LIBRARY(enum cds_wfcq_ret, cds_wfcq_splice_blocking, struct cds_wfcq_head *, struct cds_wfcq_tail *, struct cds_wfcq_head *, struct cds_wfcq_tail *);
FROM_LIBRARY(void, __cds_wfcq_init, struct __cds_wfcq_head *, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_dequeue_blocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_dequeue_with_state_blocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *, int *);
FROM_LIBRARY(enum cds_wfcq_ret, __cds_wfcq_splice_blocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_first_blocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_next_blocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *, struct cds_wfcq_node *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_dequeue_nonblocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_dequeue_with_state_nonblocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *, int *);
FROM_LIBRARY(enum cds_wfcq_ret, __cds_wfcq_splice_nonblocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_first_nonblocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *);
FROM_LIBRARY(struct cds_wfcq_node *, __cds_wfcq_next_nonblocking, cds_wfcq_head_ptr_t, struct cds_wfcq_tail *, struct cds_wfcq_node *);

FROM_LIBRARY(void, cds_wfq_node_init, struct cds_wfq_node *);
FROM_LIBRARY(void, cds_wfq_init, struct cds_wfq_queue *);
FROM_LIBRARY(void, cds_wfq_destroy, struct cds_wfq_queue *);
FROM_LIBRARY(void, cds_wfq_enqueue, struct cds_wfq_queue *, struct cds_wfq_node *);
FROM_LIBRARY(struct cds_wfq_node *, cds_wfq_dequeue_blocking, struct cds_wfq_queue *);
FROM_LIBRARY(struct cds_wfq_node *, __cds_wfq_dequeue_blocking, struct cds_wfq_queue *);

FROM_LIBRARY(void, cds_wfs_node_init, struct cds_wfs_node *);
FROM_LIBRARY(void, cds_wfs_init, struct cds_wfs_stack *);
FROM_LIBRARY(void, __cds_wfs_init, struct __cds_wfs_stack *);
FROM_LIBRARY(void, cds_wfs_destroy, struct cds_wfs_stack *);
FROM_LIBRARY(bool, cds_wfs_empty, cds_wfs_stack_ptr_t);
FROM_LIBRARY(int, cds_wfs_push, cds_wfs_stack_ptr_t, struct cds_wfs_node *);
FROM_LIBRARY(struct cds_wfs_node *, cds_wfs_pop_blocking, struct cds_wfs_stack *);
FROM_LIBRARY(struct cds_wfs_node *, cds_wfs_pop_with_state_blocking, struct cds_wfs_stack *, int *);
FROM_LIBRARY(struct cds_wfs_head *, cds_wfs_pop_all_blocking, struct cds_wfs_stack *);
FROM_LIBRARY(struct cds_wfs_node *, cds_wfs_first, struct cds_wfs_head *);
FROM_LIBRARY(struct cds_wfs_node *, cds_wfs_next_blocking, struct cds_wfs_node *);
FROM_LIBRARY(struct cds_wfs_node *, cds_wfs_next_nonblocking, struct cds_wfs_node *);
FROM_LIBRARY(void, cds_wfs_pop_lock, struct cds_wfs_stack *);
FROM_LIBRARY(void, cds_wfs_pop_unlock, struct cds_wfs_stack *);
FROM_LIBRARY(struct cds_wfs_node *, __cds_wfs_pop_blocking, cds_wfs_stack_ptr_t);
FROM_LIBRARY(struct cds_wfs_node *, __cds_wfs_pop_with_state_blocking, cds_wfs_stack_ptr_t, int *);
FROM_LIBRARY(struct cds_wfs_node *, __cds_wfs_pop_nonblocking, cds_wfs_stack_ptr_t);
FROM_LIBRARY(struct cds_wfs_node *, __cds_wfs_pop_with_state_nonblocking, cds_wfs_stack_ptr_t, int *);
FROM_LIBRARY(struct cds_wfs_head *, __cds_wfs_pop_all, cds_wfs_stack_ptr_t);

FROM_LIBRARY(void, cds_lfs_node_init, struct cds_lfs_node *);
FROM_LIBRARY(void, cds_lfs_init, struct cds_lfs_stack *);
FROM_LIBRARY(void, __cds_lfs_init, struct __cds_lfs_stack *);
FROM_LIBRARY(void, cds_lfs_destroy, struct cds_lfs_stack *);
FROM_LIBRARY(bool, cds_lfs_empty, cds_lfs_stack_ptr_t);
FROM_LIBRARY(bool, cds_lfs_push, cds_lfs_stack_ptr_t, struct cds_lfs_node *);
FROM_LIBRARY(struct cds_lfs_node *, cds_lfs_pop_blocking, struct cds_lfs_stack *);
FROM_LIBRARY(struct cds_lfs_head *, cds_lfs_pop_all_blocking, struct cds_lfs_stack *);
FROM_LIBRARY(void, cds_lfs_pop_lock, struct cds_lfs_stack *);
FROM_LIBRARY(void, cds_lfs_pop_unlock, struct cds_lfs_stack *);
FROM_LIBRARY(struct cds_lfs_node *, __cds_lfs_pop, cds_lfs_stack_ptr_t);
FROM_LIBRARY(struct cds_lfs_head *, __cds_lfs_pop_all, cds_lfs_stack_ptr_t);
FROM_LIBRARY(void, cds_lfs_node_init_rcu, struct cds_lfs_node_rcu *);
FROM_LIBRARY(void, cds_lfs_init_rcu, struct cds_lfs_stack_rcu *);
FROM_LIBRARY(int, cds_lfs_push_rcu, struct cds_lfs_stack_rcu *, struct cds_lfs_node_rcu *);
FROM_LIBRARY(struct cds_lfs_node_rcu *, cds_lfs_pop_rcu, struct cds_lfs_stack_rcu *);

FROM_LIBRARY(void, cds_lfq_node_init_rcu, struct cds_lfq_node_rcu *);
FROM_LIBRARY(void, cds_lfq_init_rcu, struct cds_lfq_queue_rcu *, void (*)(struct rcu_head *, void (*)(struct rcu_head *)));
FROM_LIBRARY(int, cds_lfq_destroy_rcu, struct cds_lfq_queue_rcu *);
FROM_LIBRARY(void, cds_lfq_enqueue_rcu, struct cds_lfq_queue_rcu *, struct cds_lfq_node_rcu *);
FROM_LIBRARY(struct cds_lfq_node_rcu *, cds_lfq_dequeue_rcu, struct cds_lfq_queue_rcu *);

#endif
