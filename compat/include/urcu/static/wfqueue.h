/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The names that liburcu gives its inlined functions, for programs that call them so. They are the
 * library's functions here: one implementation for C and Rust, which may be mended without
 * compiling a program again.
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
