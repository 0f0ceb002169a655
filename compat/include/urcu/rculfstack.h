/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The stack that <urcu/lfstack.h> replaces: pop inside a section, reuse after a grace period.
 */
#ifndef _URCU_RCULFSTACK_H
#define _URCU_RCULFSTACK_H

#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A program that defines this as nothing uses the stack without warnings. */
#ifndef CDS_LFS_RCU_DEPRECATED
#define CDS_LFS_RCU_DEPRECATED	CDS_DEPRECATED("replaced by urcu/lfstack.h")
#endif

/* An element's link: a member of the structure that is pushed. */
struct cds_lfs_node_rcu {
	struct cds_lfs_node_rcu *next;
};

/* A stack. */
struct cds_lfs_stack_rcu {
	struct cds_lfs_node_rcu *head;
};

/* Prepare an element, and a stack, which need not be destroyed. Neither blocks. */
extern CDS_LFS_RCU_DEPRECATED void cds_lfs_node_init_rcu(struct cds_lfs_node_rcu *node);
extern CDS_LFS_RCU_DEPRECATED void cds_lfs_init_rcu(struct cds_lfs_stack_rcu *s);

/* Pushes an element. Returns 0 if the stack was empty before. Lock-free. */
extern CDS_LFS_RCU_DEPRECATED int cds_lfs_push_rcu(struct cds_lfs_stack_rcu *s,
		struct cds_lfs_node_rcu *node);

/* Takes the element that was pushed last and returns it, or NULL. Inside a section. Lock-free. */
extern CDS_LFS_RCU_DEPRECATED struct cds_lfs_node_rcu *cds_lfs_pop_rcu(struct cds_lfs_stack_rcu *s);

#ifdef __cplusplus
}
#endif

#ifdef _LGPL_SOURCE
#include <urcu/static/rculfstack.h>
#endif

#endif
