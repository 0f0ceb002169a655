/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Doubly linked lists that readers traverse inside sections while one updater at a time changes
 * them. A removed element may be freed or reused after a grace period. Readers only go forward.
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
 * Internal: inserts newp between two neighbours. Its own links are written before readers can find
 * it.
 */
static __inline__ void _cds_list_publish(struct cds_list_head *__before, struct cds_list_head *newp,
		struct cds_list_head *__after)
{
	newp->prev = __before;
	newp->next = __after;
	rcu_assign_pointer(__before->next, newp);
	__after->prev = newp;
}

/* Adds newp, which is on no list, to the front. Updaters must exclude each other. Never blocks. */
static __inline__ void cds_list_add_rcu(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_publish(head, newp, head->next);
}

/* Adds newp, which is on no list, to the end. As above. */
static __inline__ void cds_list_add_tail_rcu(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_publish(head->prev, newp, head);
}

/* Replaces old with _new, which is on no list: a reader finds one of the two. As above. */
static __inline__ void cds_list_replace_rcu(struct cds_list_head *old, struct cds_list_head *_new)
{
	_cds_list_publish(old->prev, _new, old->next);
}

/*
 * Removes elem from its list. It may be freed, or added again, after a grace period. Its own links
 * do not change, so a reader that is on elem finds its way back to the list.
 */
static __inline__ void cds_list_del_rcu(struct cds_list_head *elem)
{
	elem->next->prev = elem->prev;
	/* The next element was published before, but a reader may reach it by this pointer first. */
	rcu_assign_pointer(elem->prev->next, elem->next);
}

/* Loops, inside a section: pos points to each link in turn, or, with _entry, to each structure. */
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
