/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The functions of liburcu-common.so.8: queues and stacks that need no grace period.
 */
#include "forward.h"

	.text
	forward_as __cds_wfcq_dequeue_blocking, __cds_wfcq_dequeue_with_state_blocking, 3
	forward_as __cds_wfcq_dequeue_nonblocking, __cds_wfcq_dequeue_with_state_nonblocking, 3
	forward __cds_wfcq_dequeue_with_state_blocking
	forward __cds_wfcq_dequeue_with_state_nonblocking
	forward __cds_wfcq_first_blocking
	forward __cds_wfcq_first_nonblocking
	forward __cds_wfcq_init
	forward __cds_wfcq_next_blocking
	forward __cds_wfcq_next_nonblocking
	forward __cds_wfcq_splice_blocking
	forward __cds_wfcq_splice_nonblocking
	forward __cds_wfq_dequeue_blocking
	forward __cds_wfs_init
	forward __cds_wfs_pop_all
	forward_as __cds_wfs_pop_blocking, __cds_wfs_pop_with_state_blocking, 2
	forward_as __cds_wfs_pop_nonblocking, __cds_wfs_pop_with_state_nonblocking, 2
	forward __cds_wfs_pop_with_state_blocking
	forward __cds_wfs_pop_with_state_nonblocking
	forward_as cds_wfcq_dequeue_blocking, cds_wfcq_dequeue_with_state_blocking, 3
	forward cds_wfcq_dequeue_lock
	forward cds_wfcq_dequeue_unlock
	forward cds_wfcq_dequeue_with_state_blocking
	forward cds_wfcq_destroy
	forward cds_wfcq_empty
	forward cds_wfcq_enqueue
	forward cds_wfcq_init
	forward cds_wfcq_node_init
	forward cds_wfcq_splice_blocking
	forward cds_wfq_dequeue_blocking
	forward cds_wfq_destroy
	forward cds_wfq_enqueue
	forward cds_wfq_init
	forward_as cds_wfq_node_init, cds_wfcq_node_init
	forward cds_wfs_destroy
	forward cds_wfs_empty
	forward cds_wfs_first
	forward cds_wfs_init
	forward cds_wfs_next_blocking
	forward cds_wfs_next_nonblocking
	forward_as cds_wfs_node_init, cds_lfs_node_init
	forward cds_wfs_pop_all_blocking
	forward_as cds_wfs_pop_blocking, cds_wfs_pop_with_state_blocking, 2
	forward cds_wfs_pop_lock
	forward cds_wfs_pop_unlock
	forward cds_wfs_pop_with_state_blocking
	forward cds_wfs_push

	.section .note.GNU-stack,"",%progbits
