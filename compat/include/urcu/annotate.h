/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Annotations for ThreadSanitizer, which does not understand barriers: they say which memory an
 * operation acquires or releases. They produce code only in programs that define
 * CMM_SANITIZE_THREAD. liburcu has them since 0.15.
 *
 * Operations that share one barrier are a group: loads, then an acquiring barrier; or a releasing
 * barrier, then stores.
 *
 *	cmm_annotate_define(group);
 *	found = uatomic_load(&flag, CMM_RELAXED);
 *	cmm_annotate_group_mem_acquire(&group, &flag);
 *	cmm_smp_rmb();
 *	cmm_annotate_group_mb_acquire(&group);
 */
#ifndef _URCU_ANNOTATE_H
#define _URCU_ANNOTATE_H

#include <urcu/compiler.h>
#include <urcu/config.h>

/* The last operation of a group. */
enum cmm_annotate {
	CMM_ANNOTATE_VOID,
	CMM_ANNOTATE_LOAD,
	CMM_ANNOTATE_STORE,
	CMM_ANNOTATE_MB
};

typedef enum cmm_annotate cmm_annotate_t __attribute__((__unused__));

/* Defines a group, as a local variable. */
#define cmm_annotate_define(name)	cmm_annotate_t name = CMM_ANNOTATE_VOID

#ifdef CMM_SANITIZE_THREAD

#ifdef __cplusplus
extern "C" {
#endif

/* Functions of ThreadSanitizer. */
extern void __tsan_acquire(void *addr);
extern void __tsan_release(void *addr);

#ifdef __cplusplus
}
#endif

/* The memory at mem is acquired, or released, at this point. */
#define cmm_annotate_mem_acquire(mem)	__tsan_acquire((void *) (mem))
#define cmm_annotate_mem_release(mem)	__tsan_release((void *) (mem))

/* The same, by the barrier that the group shares; group is the address of the group. */
#define cmm_annotate_group_mem_acquire(group, mem)					\
	((void) (*(group) = CMM_ANNOTATE_LOAD), __tsan_acquire((void *) (mem)))
#define cmm_annotate_group_mem_release(group, mem)					\
	((void) (*(group) = CMM_ANNOTATE_STORE), __tsan_release((void *) (mem)))

/* The barrier of a group. */
#define cmm_annotate_group_mb_acquire(group)	((void) (*(group) = CMM_ANNOTATE_MB))
#define cmm_annotate_group_mb_release(group)	((void) (*(group) = CMM_ANNOTATE_MB))

#else

#define cmm_annotate_mem_acquire(mem)			((void) 0)
#define cmm_annotate_mem_release(mem)			((void) 0)
#define cmm_annotate_group_mem_acquire(group, mem)	((void) (group))
#define cmm_annotate_group_mem_release(group, mem)	((void) (group))
#define cmm_annotate_group_mb_acquire(group)		((void) (group))
#define cmm_annotate_group_mb_release(group)		((void) (group))

#endif

#endif
