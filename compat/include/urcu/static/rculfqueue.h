/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * liburcu's names for its inlined functions. Here they are the library's own functions: C and Rust
 * share one implementation, and a fix needs no recompilation of programs.
 */
#ifndef _URCU_RCULFQUEUE_STATIC_H
#define _URCU_RCULFQUEUE_STATIC_H

#include <errno.h>
#include <urcu/call-rcu.h>
#include <urcu/pointer.h>
#include <urcu/rculfqueue.h>
#include <urcu/uatomic.h>

#define _cds_lfq_node_init_rcu	cds_lfq_node_init_rcu
#define _cds_lfq_init_rcu	cds_lfq_init_rcu
#define _cds_lfq_destroy_rcu	cds_lfq_destroy_rcu
#define _cds_lfq_enqueue_rcu	cds_lfq_enqueue_rcu
#define _cds_lfq_dequeue_rcu	cds_lfq_dequeue_rcu

#endif
