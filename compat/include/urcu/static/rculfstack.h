/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * liburcu's names for its inlined functions. Here they are the library's own functions: C and Rust
 * share one implementation, and a fix needs no recompilation of programs.
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
