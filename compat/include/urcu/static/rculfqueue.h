/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The names that liburcu gives its inlined functions, for programs that call them so. They are the
 * library's functions here: one implementation for C and Rust, which may be mended without
 * compiling a program again.
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
