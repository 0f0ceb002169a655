/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Prints the layouts and numbers that are compiled into clients. Compiled against either headers, it prints the same. */
#define _LGPL_SOURCE
#include <stddef.h>
#include <stdio.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/urcu-bp.h>
#include <urcu/static/urcu-memb.h>
#include <urcu/static/urcu-qsbr.h>
#include <urcu/static/urcu-bp.h>
#include <urcu/flavor.h>
#include <urcu/call-rcu.h>
#include <urcu/list.h>
#include <urcu/hlist.h>
#include <urcu/wfcqueue.h>
#include <urcu/wfstack.h>
#include <urcu/lfstack.h>
#include <urcu/rculfqueue.h>
#include <urcu/rculfhash.h>
#include <urcu/ref.h>

#define SIZE(type) printf(#type " %zu %zu\n", sizeof(type), _Alignof(type))
#define FIELD(type, field) printf(#type "." #field " %zu %zu\n", offsetof(type, field), sizeof(((type *)0)->field))
#define NUMBER(name) printf(#name " %ld\n", (long)(name))

static void readers(void)
{
	SIZE(struct urcu_gp);
	FIELD(struct urcu_gp, ctr);
	FIELD(struct urcu_gp, futex);
	SIZE(struct urcu_reader);
	FIELD(struct urcu_reader, ctr);
	SIZE(struct urcu_qsbr_reader);
	FIELD(struct urcu_qsbr_reader, ctr);
	FIELD(struct urcu_qsbr_reader, waiting);
	SIZE(struct urcu_bp_gp);
	FIELD(struct urcu_bp_gp, ctr);
	SIZE(struct urcu_bp_reader);
	FIELD(struct urcu_bp_reader, ctr);
	SIZE(urcu_bp_reader);
}

static void flavor(void)
{
	SIZE(struct rcu_flavor_struct);
	FIELD(struct rcu_flavor_struct, read_lock);
	FIELD(struct rcu_flavor_struct, read_unlock);
	FIELD(struct rcu_flavor_struct, read_ongoing);
	FIELD(struct rcu_flavor_struct, read_quiescent_state);
	FIELD(struct rcu_flavor_struct, update_call_rcu);
	FIELD(struct rcu_flavor_struct, update_synchronize_rcu);
	FIELD(struct rcu_flavor_struct, update_defer_rcu);
	FIELD(struct rcu_flavor_struct, thread_offline);
	FIELD(struct rcu_flavor_struct, thread_online);
	FIELD(struct rcu_flavor_struct, register_thread);
	FIELD(struct rcu_flavor_struct, unregister_thread);
	FIELD(struct rcu_flavor_struct, barrier);
	FIELD(struct rcu_flavor_struct, register_rculfhash_atfork);
	FIELD(struct rcu_flavor_struct, unregister_rculfhash_atfork);
	SIZE(struct urcu_atfork);
	FIELD(struct urcu_atfork, before_fork);
	FIELD(struct urcu_atfork, after_fork_parent);
	FIELD(struct urcu_atfork, after_fork_child);
	FIELD(struct urcu_atfork, priv);
	SIZE(struct rcu_head);
	FIELD(struct rcu_head, next);
	FIELD(struct rcu_head, func);
	NUMBER(URCU_CALL_RCU_RT);
}

static void structures(void)
{
	SIZE(struct cds_list_head);
	SIZE(struct cds_hlist_head);
	SIZE(struct cds_hlist_node);
	SIZE(struct urcu_ref);
	SIZE(struct cds_wfcq_node);
	SIZE(struct __cds_wfcq_head);
	SIZE(struct cds_wfcq_head);
	FIELD(struct cds_wfcq_head, lock);
	SIZE(struct cds_wfcq_tail);
	NUMBER(CDS_WFCQ_RET_WOULDBLOCK);
	NUMBER(CDS_WFCQ_RET_DEST_EMPTY);
	NUMBER(CDS_WFCQ_RET_DEST_NON_EMPTY);
	NUMBER(CDS_WFCQ_RET_SRC_EMPTY);
	NUMBER(CDS_WFCQ_STATE_LAST);
	NUMBER(CDS_WFCQ_WOULDBLOCK);
	SIZE(struct cds_wfs_node);
	SIZE(struct cds_wfs_head);
	SIZE(struct __cds_wfs_stack);
	SIZE(struct cds_wfs_stack);
	FIELD(struct cds_wfs_stack, lock);
	NUMBER(CDS_WFS_STATE_LAST);
	NUMBER(CDS_WFS_WOULDBLOCK);
	SIZE(struct cds_lfs_node);
	SIZE(struct cds_lfs_head);
	SIZE(struct __cds_lfs_stack);
	SIZE(struct cds_lfs_stack);
	FIELD(struct cds_lfs_stack, lock);
	SIZE(struct cds_lfq_node_rcu);
	SIZE(struct cds_lfq_queue_rcu);
	FIELD(struct cds_lfq_queue_rcu, head);
	FIELD(struct cds_lfq_queue_rcu, tail);
	FIELD(struct cds_lfq_queue_rcu, queue_call_rcu);
	SIZE(struct cds_lfht_node);
	FIELD(struct cds_lfht_node, next);
	FIELD(struct cds_lfht_node, reverse_hash);
	SIZE(struct cds_lfht_iter);
	FIELD(struct cds_lfht_iter, node);
	FIELD(struct cds_lfht_iter, next);
	SIZE(struct cds_lfht_mm_type);
	NUMBER(CDS_LFHT_AUTO_RESIZE);
	NUMBER(CDS_LFHT_ACCOUNTING);
}

int main(void)
{
	readers();
	flavor();
	structures();
	return 0;
}
