/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * liburcu's names for its inlined functions. Here they are the library's own functions: C and Rust
 * share one implementation, and a fix needs no recompilation of programs.
 */
#ifndef _URCU_WFCQUEUE_STATIC_H
#define _URCU_WFCQUEUE_STATIC_H

#include <poll.h>
#include <urcu/uatomic.h>
#include <urcu/wfcqueue.h>

#define _cds_wfcq_node_init	cds_wfcq_node_init
#define _cds_wfcq_init	cds_wfcq_init
#define _cds_wfcq_destroy	cds_wfcq_destroy
#define ___cds_wfcq_init	__cds_wfcq_init
#define _cds_wfcq_empty	cds_wfcq_empty
#define _cds_wfcq_enqueue	cds_wfcq_enqueue
#define _cds_wfcq_dequeue_lock	cds_wfcq_dequeue_lock
#define _cds_wfcq_dequeue_unlock	cds_wfcq_dequeue_unlock
#define _cds_wfcq_dequeue_blocking	cds_wfcq_dequeue_blocking
#define _cds_wfcq_dequeue_with_state_blocking	cds_wfcq_dequeue_with_state_blocking
#define _cds_wfcq_splice_blocking	cds_wfcq_splice_blocking
#define ___cds_wfcq_dequeue_blocking	__cds_wfcq_dequeue_blocking
#define ___cds_wfcq_dequeue_with_state_blocking	__cds_wfcq_dequeue_with_state_blocking
#define ___cds_wfcq_dequeue_nonblocking	__cds_wfcq_dequeue_nonblocking
#define ___cds_wfcq_dequeue_with_state_nonblocking	__cds_wfcq_dequeue_with_state_nonblocking
#define ___cds_wfcq_splice_blocking	__cds_wfcq_splice_blocking
#define ___cds_wfcq_splice_nonblocking	__cds_wfcq_splice_nonblocking
#define ___cds_wfcq_first_blocking	__cds_wfcq_first_blocking
#define ___cds_wfcq_first_nonblocking	__cds_wfcq_first_nonblocking
#define ___cds_wfcq_next_blocking	__cds_wfcq_next_blocking
#define ___cds_wfcq_next_nonblocking	__cds_wfcq_next_nonblocking

#endif
