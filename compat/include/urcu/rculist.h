/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Doubly linked lists that are walked inside sections while one updater at a time changes them.
 * What has been taken out is freed or used again after a grace period. Readers go forward only.
 */
#ifndef _URCU_RCULIST_H
#define _URCU_RCULIST_H

#include <urcu/arch.h>
#include <urcu/list.h>
#include <urcu/pointer.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * For these headers' own use: newp, between two neighbours. Readers find it once its own links are
 * written.
 */
static __inline__ void _cds_list_publish(struct cds_list_head *__before, struct cds_list_head *newp,
		struct cds_list_head *__after)
{
	newp->prev = __before;
	newp->next = __after;
	rcu_assign_pointer(__before->next, newp);
	__after->prev = newp;
}

/* Adds newp, which is on no list, at the front. Updaters exclude each other; never blocks. */
static __inline__ void cds_list_add_rcu(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_publish(head, newp, head->next);
}

/* Adds newp, which is on no list, at the end. As above. */
static __inline__ void cds_list_add_tail_rcu(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_publish(head->prev, newp, head);
}

/* Puts _new, which is on no list, where old is: a reader finds the one or the other. As above. */
static __inline__ void cds_list_replace_rcu(struct cds_list_head *old, struct cds_list_head *_new)
{
	_cds_list_publish(old->prev, _new, old->next);
}

/*
 * Takes elem off its list. It may be freed, or added again, after a grace period: its own links
 * stay as they are, by which readers who are there find back to the list.
 */
static __inline__ void cds_list_del_rcu(struct cds_list_head *elem)
{
	elem->next->prev = elem->prev;
	/* Not published anew, but a reader may come to it by this pointer first. */
	rcu_assign_pointer(elem->prev->next, elem->next);
}

/* Loops, inside a section: pos is each link of the list, or with _entry each structure, in turn. */
#define cds_list_for_each_rcu(pos, head)					\
	for (pos = rcu_dereference((head)->next); pos != (head);		\
			pos = rcu_dereference((pos)->next))

#define cds_list_for_each_entry_rcu(pos, head, member)				\
	for (pos = _cds_list_like(pos, rcu_dereference((head)->next), member);	\
			&(pos)->member != (head);				\
			pos = _cds_list_like(pos, rcu_dereference((pos)->member.next), member))

#ifdef __cplusplus
}
#endif

#endif
