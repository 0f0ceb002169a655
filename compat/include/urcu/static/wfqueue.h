/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * liburcu's names for its inlined functions. Here they are the library's own functions: C and Rust
 * share one implementation, and a fix needs no recompilation of programs.
 */
#ifndef _URCU_WFQUEUE_STATIC_H
#define _URCU_WFQUEUE_STATIC_H

#include <poll.h>
#include <urcu/uatomic.h>
#include <urcu/wfqueue.h>

#define _cds_wfq_node_init	cds_wfq_node_init
#define _cds_wfq_init	cds_wfq_init
#define _cds_wfq_destroy	cds_wfq_destroy
#define _cds_wfq_enqueue	cds_wfq_enqueue
#define _cds_wfq_dequeue_blocking	cds_wfq_dequeue_blocking
#define ___cds_wfq_dequeue_blocking	__cds_wfq_dequeue_blocking

#endif
