/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions of liburcu-cds.so.8: the hash table, the structures whose memory RCU protects, the work queue.
 */
#include "forward.h"

	.text
	forward __cds_lfs_init
	forward __cds_lfs_pop
	forward __cds_lfs_pop_all
	forward _cds_lfht_new
	forward _cds_lfht_new_with_alloc
	forward cds_lfht_add
	forward cds_lfht_add_replace
	forward cds_lfht_add_unique
	forward cds_lfht_count_nodes
	forward cds_lfht_del
	forward cds_lfht_destroy
	forward cds_lfht_first
	forward cds_lfht_fls_ulong
	forward cds_lfht_get_count_order_ulong
	forward cds_lfht_is_node_deleted
	forward cds_lfht_lookup
	forward cds_lfht_next
	forward cds_lfht_next_duplicate
	forward cds_lfht_node_init_deleted
	forward cds_lfht_replace
	forward cds_lfht_resize
	forward cds_lfq_dequeue_rcu
	forward cds_lfq_destroy_rcu
	forward cds_lfq_enqueue_rcu
	forward cds_lfq_init_rcu
	forward cds_lfq_node_init_rcu
	forward cds_lfs_destroy
	forward cds_lfs_empty
	forward cds_lfs_init
	forward_as cds_lfs_init_rcu, __cds_lfs_init
	forward cds_lfs_node_init
	forward_as cds_lfs_node_init_rcu, cds_lfs_node_init
	forward cds_lfs_pop_all_blocking
	forward cds_lfs_pop_blocking
	forward cds_lfs_pop_lock
	forward_as cds_lfs_pop_rcu, __cds_lfs_pop
	forward cds_lfs_pop_unlock
	forward cds_lfs_push
	forward_as cds_lfs_push_rcu, cds_lfs_push
	forward urcu_workqueue_create
	forward urcu_workqueue_create_completion
	forward urcu_workqueue_create_worker
	forward urcu_workqueue_destroy
	forward urcu_workqueue_destroy_completion
	forward urcu_workqueue_flush_queued_work
	forward urcu_workqueue_pause_worker
	forward urcu_workqueue_queue_completion
	forward urcu_workqueue_queue_work
	forward urcu_workqueue_resume_worker
	forward urcu_workqueue_wait_completion

	.section .note.GNU-stack,"",%progbits
