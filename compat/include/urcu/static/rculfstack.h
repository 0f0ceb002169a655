/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The names that liburcu gives its inlined functions, for programs that call them so. They are the
 * library's functions here: one implementation for C and Rust, which may be mended without
 * compiling a program again.
 */
#ifndef _URCU_RCULFSTACK_STATIC_H
#define _URCU_RCULFSTACK_STATIC_H

#include <urcu/pointer.h>
#include <urcu/rculfstack.h>
#include <urcu/uatomic.h>

#define _cds_lfs_node_init_rcu	cds_lfs_node_init_rcu
#define _cds_lfs_init_rcu	cds_lfs_init_rcu
#define _cds_lfs_push_rcu	cds_lfs_push_rcu
#define _cds_lfs_pop_rcu	cds_lfs_pop_rcu

#endif
