/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Writes every size, alignment, offset and constant of the interface, one a line. Compiled against our headers and
 * Debian's, it must write the same.
 */
#define _LGPL_SOURCE
#define CDS_WFQ_DEPRECATED
#define CDS_LFS_RCU_DEPRECATED
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <urcu/cds.h>
#include <urcu/futex.h>
#include <urcu/ref.h>
#include <urcu/urcu-bp.h>
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#ifdef LIBURCU_0_15
#include <urcu/annotate.h>
#else
#include <urcu/urcu-signal.h>
#include <urcu/static/urcu-signal-nr.h>
#endif

#define TYPE(type)									\
	printf("%s: size %zu, alignment %zu\n", #type, sizeof(type), __alignof__(type))
#define MEMBER(type, member)								\
	printf("%s.%s: offset %zu, size %zu\n", #type, #member, offsetof(type, member),	\
			sizeof(((type *) 0)->member))
#define VALUE(value)	printf("%s: %ld, size %zu\n", #value, (long) (value), sizeof(value))

static void records(void)
{
	struct urcu_reader reader = { .registered = 1 };
	struct urcu_qsbr_reader qsbr = { .registered = 1 };

	TYPE(struct urcu_gp);
	MEMBER(struct urcu_gp, ctr);
	MEMBER(struct urcu_gp, futex);
	TYPE(struct urcu_reader);
	MEMBER(struct urcu_reader, ctr);
	MEMBER(struct urcu_reader, need_mb);
	MEMBER(struct urcu_reader, node);
	MEMBER(struct urcu_reader, tid);
	printf("registered: %d\n", ((unsigned char *) &reader)[152]);
	TYPE(struct urcu_qsbr_reader);
	MEMBER(struct urcu_qsbr_reader, ctr);
	MEMBER(struct urcu_qsbr_reader, node);
	MEMBER(struct urcu_qsbr_reader, waiting);
	MEMBER(struct urcu_qsbr_reader, tid);
	printf("registered: %d\n", ((unsigned char *) &qsbr)[160]);
	TYPE(struct urcu_bp_gp);
	MEMBER(struct urcu_bp_gp, ctr);
	TYPE(struct urcu_bp_reader);
	MEMBER(struct urcu_bp_reader, ctr);
	MEMBER(struct urcu_bp_reader, node);
	MEMBER(struct urcu_bp_reader, tid);
	MEMBER(struct urcu_bp_reader, alloc);
	VALUE(URCU_GP_COUNT);
	VALUE(URCU_GP_CTR_PHASE);
	VALUE(URCU_GP_CTR_NEST_MASK);
	VALUE(URCU_BP_GP_COUNT);
	VALUE(URCU_BP_GP_CTR_PHASE);
	VALUE(URCU_BP_GP_CTR_NEST_MASK);
	VALUE(URCU_QSBR_GP_ONLINE);
	VALUE(URCU_QSBR_GP_CTR);
}

static void flavors(void)
{
	TYPE(struct rcu_head);
	MEMBER(struct rcu_head, next);
	MEMBER(struct rcu_head, func);
	TYPE(struct urcu_atfork);
	MEMBER(struct urcu_atfork, before_fork);
	MEMBER(struct urcu_atfork, after_fork_parent);
	MEMBER(struct urcu_atfork, after_fork_child);
	MEMBER(struct urcu_atfork, priv);
	/* Compared with 0.13's for what that has. */
#ifdef LIBURCU_0_15
	TYPE(struct rcu_flavor_struct);
	MEMBER(struct rcu_flavor_struct, update_start_poll_synchronize_rcu);
	MEMBER(struct rcu_flavor_struct, update_poll_state_synchronize_rcu);
	TYPE(struct urcu_gp_poll_state);
	MEMBER(struct urcu_gp_poll_state, grace_period_id);
#endif
	MEMBER(struct rcu_flavor_struct, read_lock);
	MEMBER(struct rcu_flavor_struct, read_unlock);
	MEMBER(struct rcu_flavor_struct, read_ongoing);
	MEMBER(struct rcu_flavor_struct, read_quiescent_state);
	MEMBER(struct rcu_flavor_struct, update_call_rcu);
	MEMBER(struct rcu_flavor_struct, update_synchronize_rcu);
	MEMBER(struct rcu_flavor_struct, update_defer_rcu);
	MEMBER(struct rcu_flavor_struct, thread_offline);
	MEMBER(struct rcu_flavor_struct, thread_online);
	MEMBER(struct rcu_flavor_struct, register_thread);
	MEMBER(struct rcu_flavor_struct, unregister_thread);
	MEMBER(struct rcu_flavor_struct, barrier);
	MEMBER(struct rcu_flavor_struct, register_rculfhash_atfork);
	MEMBER(struct rcu_flavor_struct, unregister_rculfhash_atfork);
	VALUE(URCU_CALL_RCU_RT);
	VALUE(URCU_CALL_RCU_RUNNING);
	VALUE(URCU_CALL_RCU_STOP);
	VALUE(URCU_CALL_RCU_STOPPED);
	VALUE(URCU_CALL_RCU_PAUSE);
	VALUE(URCU_CALL_RCU_PAUSED);
#ifndef LIBURCU_0_15
	VALUE(SIGRCU);
#endif
}

#ifdef LIBURCU_0_15
static void orders(void)
{
	VALUE(CMM_RELAXED);
	VALUE(CMM_CONSUME);
	VALUE(CMM_ACQUIRE);
	VALUE(CMM_RELEASE);
	VALUE(CMM_ACQ_REL);
	VALUE(CMM_SEQ_CST);
	VALUE(CMM_SEQ_CST_FENCE);
	VALUE(CMM_ANNOTATE_VOID);
	VALUE(CMM_ANNOTATE_LOAD);
	VALUE(CMM_ANNOTATE_STORE);
	VALUE(CMM_ANNOTATE_MB);
	TYPE(cds_wfcq_head_const_ptr_t);
	TYPE(cds_wfs_stack_const_ptr_t);
	TYPE(cds_lfs_stack_const_ptr_t);
	TYPE(struct cds_lfht_alloc);
	MEMBER(struct cds_lfht_alloc, malloc);
	MEMBER(struct cds_lfht_alloc, calloc);
	MEMBER(struct cds_lfht_alloc, realloc);
	MEMBER(struct cds_lfht_alloc, aligned_alloc);
	MEMBER(struct cds_lfht_alloc, free);
	MEMBER(struct cds_lfht_alloc, state);
}
#endif

static void queues(void)
{
	TYPE(struct cds_wfcq_node);
	MEMBER(struct cds_wfcq_node, next);
	TYPE(struct __cds_wfcq_head);
	TYPE(struct cds_wfcq_head);
	MEMBER(struct cds_wfcq_head, node);
	MEMBER(struct cds_wfcq_head, lock);
	TYPE(struct cds_wfcq_tail);
	MEMBER(struct cds_wfcq_tail, p);
	TYPE(cds_wfcq_head_ptr_t);
	TYPE(struct cds_wfq_node);
	TYPE(struct cds_wfq_queue);
	MEMBER(struct cds_wfq_queue, head);
	MEMBER(struct cds_wfq_queue, tail);
	MEMBER(struct cds_wfq_queue, dummy);
	MEMBER(struct cds_wfq_queue, lock);
	TYPE(struct cds_lfq_node_rcu);
	MEMBER(struct cds_lfq_node_rcu, next);
	MEMBER(struct cds_lfq_node_rcu, dummy);
	TYPE(struct cds_lfq_queue_rcu);
	MEMBER(struct cds_lfq_queue_rcu, head);
	MEMBER(struct cds_lfq_queue_rcu, tail);
	MEMBER(struct cds_lfq_queue_rcu, queue_call_rcu);
	VALUE(CDS_WFCQ_WOULDBLOCK);
	VALUE(CDS_WFCQ_RET_WOULDBLOCK);
	VALUE(CDS_WFCQ_RET_DEST_EMPTY);
	VALUE(CDS_WFCQ_RET_DEST_NON_EMPTY);
	VALUE(CDS_WFCQ_RET_SRC_EMPTY);
	VALUE(CDS_WFCQ_STATE_LAST);
	TYPE(enum cds_wfcq_ret);
	TYPE(enum cds_wfcq_state);
}

static void stacks(void)
{
	TYPE(struct cds_wfs_node);
	MEMBER(struct cds_wfs_node, next);
	TYPE(struct cds_wfs_head);
	TYPE(struct __cds_wfs_stack);
	TYPE(struct cds_wfs_stack);
	MEMBER(struct cds_wfs_stack, head);
	MEMBER(struct cds_wfs_stack, lock);
	TYPE(cds_wfs_stack_ptr_t);
	TYPE(struct cds_lfs_node);
	MEMBER(struct cds_lfs_node, next);
	TYPE(struct cds_lfs_head);
	TYPE(struct __cds_lfs_stack);
	TYPE(struct cds_lfs_stack);
	MEMBER(struct cds_lfs_stack, head);
	MEMBER(struct cds_lfs_stack, lock);
	TYPE(cds_lfs_stack_ptr_t);
	TYPE(struct cds_lfs_node_rcu);
	MEMBER(struct cds_lfs_node_rcu, next);
	TYPE(struct cds_lfs_stack_rcu);
	MEMBER(struct cds_lfs_stack_rcu, head);
	VALUE(CDS_WFS_WOULDBLOCK);
	VALUE(CDS_WFS_STATE_LAST);
	TYPE(enum cds_wfs_state);
}

static void tables_and_lists(void)
{
	TYPE(struct cds_lfht_node);
	MEMBER(struct cds_lfht_node, next);
	MEMBER(struct cds_lfht_node, reverse_hash);
	TYPE(struct cds_lfht_iter);
	MEMBER(struct cds_lfht_iter, node);
	MEMBER(struct cds_lfht_iter, next);
	TYPE(struct cds_lfht_mm_type);
	MEMBER(struct cds_lfht_mm_type, alloc_cds_lfht);
	MEMBER(struct cds_lfht_mm_type, alloc_bucket_table);
	MEMBER(struct cds_lfht_mm_type, free_bucket_table);
	MEMBER(struct cds_lfht_mm_type, bucket_at);
	VALUE(CDS_LFHT_AUTO_RESIZE);
	VALUE(CDS_LFHT_ACCOUNTING);
	TYPE(struct cds_list_head);
	MEMBER(struct cds_list_head, next);
	MEMBER(struct cds_list_head, prev);
	TYPE(struct cds_hlist_head);
	TYPE(struct cds_hlist_node);
	MEMBER(struct cds_hlist_node, next);
	MEMBER(struct cds_hlist_node, prev);
	TYPE(struct urcu_ref);
	MEMBER(struct urcu_ref, refcount);
}

int main(void)
{
	records();
	flavors();
	queues();
#ifdef LIBURCU_0_15
	orders();
#endif
	stacks();
	tables_and_lists();
	VALUE(CAA_BITS_PER_LONG);
	VALUE(CAA_CACHE_LINE_SIZE);
	VALUE(FUTEX_WAIT);
	VALUE(FUTEX_WAKE);
	TYPE(caa_cycles_t);
	return 0;
}
