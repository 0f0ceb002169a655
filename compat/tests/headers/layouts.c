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

/* Up to seven members of a type. */
#define MEMBERS_1(type, member)		MEMBER(type, member)
#define MEMBERS_2(type, member, ...)	MEMBER(type, member); MEMBERS_1(type, __VA_ARGS__)
#define MEMBERS_3(type, member, ...)	MEMBER(type, member); MEMBERS_2(type, __VA_ARGS__)
#define MEMBERS_4(type, member, ...)	MEMBER(type, member); MEMBERS_3(type, __VA_ARGS__)
#define MEMBERS_5(type, member, ...)	MEMBER(type, member); MEMBERS_4(type, __VA_ARGS__)
#define MEMBERS_6(type, member, ...)	MEMBER(type, member); MEMBERS_5(type, __VA_ARGS__)
#define MEMBERS_7(type, member, ...)	MEMBER(type, member); MEMBERS_6(type, __VA_ARGS__)
#define EIGHTH(a, b, c, d, e, f, g, h, ...)	h
#define COUNTED(...)	EIGHTH(__VA_ARGS__, MEMBERS_7, MEMBERS_6, MEMBERS_5, MEMBERS_4, MEMBERS_3, \
			       MEMBERS_2, MEMBERS_1, )
#define MEMBERS(type, ...)	COUNTED(__VA_ARGS__)(type, __VA_ARGS__)

static void records(void)
{
	struct urcu_reader reader = { .registered = 1 };
	struct urcu_qsbr_reader qsbr = { .registered = 1 };

	TYPE(struct urcu_gp);
	MEMBERS(struct urcu_gp, ctr, futex);
	TYPE(struct urcu_reader);
	MEMBERS(struct urcu_reader, ctr, need_mb, node, tid);
	printf("registered: %d\n", ((unsigned char *) &reader)[152]);
	TYPE(struct urcu_qsbr_reader);
	MEMBERS(struct urcu_qsbr_reader, ctr, node, waiting, tid);
	printf("registered: %d\n", ((unsigned char *) &qsbr)[160]);
	TYPE(struct urcu_bp_gp);
	MEMBERS(struct urcu_bp_gp, ctr);
	TYPE(struct urcu_bp_reader);
	MEMBERS(struct urcu_bp_reader, ctr, node, tid, alloc);
	TYPE(urcu_bp_reader);
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
	MEMBERS(struct rcu_head, next, func);
	TYPE(struct urcu_atfork);
	MEMBERS(struct urcu_atfork, before_fork, after_fork_parent, after_fork_child, priv);
	/* Compared with 0.13's for what that has. */
#ifdef LIBURCU_0_15
	TYPE(struct rcu_flavor_struct);
	MEMBERS(struct rcu_flavor_struct, update_start_poll_synchronize_rcu,
		update_poll_state_synchronize_rcu);
	TYPE(struct urcu_gp_poll_state);
	MEMBERS(struct urcu_gp_poll_state, grace_period_id);
#endif
	MEMBERS(struct rcu_flavor_struct, read_lock, read_unlock, read_ongoing,
		read_quiescent_state, update_call_rcu, update_synchronize_rcu, update_defer_rcu);
	MEMBERS(struct rcu_flavor_struct, thread_offline, thread_online, register_thread,
		unregister_thread, barrier, register_rculfhash_atfork,
		unregister_rculfhash_atfork);
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
	MEMBERS(struct cds_lfht_alloc, malloc, calloc, realloc, aligned_alloc, free, state);
}
#endif

static void queues(void)
{
	TYPE(struct cds_wfcq_node);
	MEMBERS(struct cds_wfcq_node, next);
	TYPE(struct __cds_wfcq_head);
	TYPE(struct cds_wfcq_head);
	MEMBERS(struct cds_wfcq_head, node, lock);
	TYPE(struct cds_wfcq_tail);
	MEMBERS(struct cds_wfcq_tail, p);
	TYPE(cds_wfcq_head_ptr_t);
	TYPE(struct cds_wfq_node);
	TYPE(struct cds_wfq_queue);
	MEMBERS(struct cds_wfq_queue, head, tail, dummy, lock);
	TYPE(struct cds_lfq_node_rcu);
	MEMBERS(struct cds_lfq_node_rcu, next, dummy);
	TYPE(struct cds_lfq_queue_rcu);
	MEMBERS(struct cds_lfq_queue_rcu, head, tail, queue_call_rcu);
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
	MEMBERS(struct cds_wfs_node, next);
	TYPE(struct cds_wfs_head);
	TYPE(struct __cds_wfs_stack);
	TYPE(struct cds_wfs_stack);
	MEMBERS(struct cds_wfs_stack, head, lock);
	TYPE(cds_wfs_stack_ptr_t);
	TYPE(struct cds_lfs_node);
	MEMBERS(struct cds_lfs_node, next);
	TYPE(struct cds_lfs_head);
	TYPE(struct __cds_lfs_stack);
	TYPE(struct cds_lfs_stack);
	MEMBERS(struct cds_lfs_stack, head, lock);
	TYPE(cds_lfs_stack_ptr_t);
	TYPE(struct cds_lfs_node_rcu);
	MEMBERS(struct cds_lfs_node_rcu, next);
	TYPE(struct cds_lfs_stack_rcu);
	MEMBERS(struct cds_lfs_stack_rcu, head);
	VALUE(CDS_WFS_WOULDBLOCK);
	VALUE(CDS_WFS_STATE_LAST);
	TYPE(enum cds_wfs_state);
}

static void tables_and_lists(void)
{
	TYPE(struct cds_lfht_node);
	MEMBERS(struct cds_lfht_node, next, reverse_hash);
	TYPE(struct cds_lfht_iter);
	MEMBERS(struct cds_lfht_iter, node, next);
	TYPE(struct cds_lfht_mm_type);
	MEMBERS(struct cds_lfht_mm_type, alloc_cds_lfht, alloc_bucket_table, free_bucket_table,
		bucket_at);
	VALUE(CDS_LFHT_AUTO_RESIZE);
	VALUE(CDS_LFHT_ACCOUNTING);
	TYPE(struct cds_list_head);
	MEMBERS(struct cds_list_head, next, prev);
	TYPE(struct cds_hlist_head);
	TYPE(struct cds_hlist_node);
	MEMBERS(struct cds_hlist_node, next, prev);
	TYPE(struct urcu_ref);
	MEMBERS(struct urcu_ref, refcount);
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
