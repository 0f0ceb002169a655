/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lists for the buckets of a hash table that readers traverse inside sections while one updater at
 * a time changes them. A removed element may be freed or reused after a grace period.
 */
#ifndef _URCU_RCUHLIST_H
#define _URCU_RCUHLIST_H

#include <urcu/arch.h>
#include <urcu/hlist.h>
#include <urcu/pointer.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Adds newp, which is on no list, to the front. Updaters must exclude each other. Never blocks. */
static __inline__ void cds_hlist_add_head_rcu(struct cds_hlist_node *newp, struct cds_hlist_head *head)
{
	struct cds_hlist_node *__second = head->next;

	newp->next = __second;
	newp->prev = (struct cds_hlist_node *) (void *) head;
	rcu_assign_pointer(head->next, newp);
	if (__second)
		__second->prev = newp;
}

/*
 * Removes elem from its list. It may be freed, or added again, after a grace period. Its own links
 * do not change, so a reader that is on elem finds its way back to the list.
 */
static __inline__ void cds_hlist_del_rcu(struct cds_hlist_node *elem)
{
	if (elem->next)
		elem->next->prev = elem->prev;
	rcu_set_pointer(_cds_hlist_link_to(elem), elem->next);
}

/* Loops, inside a section, as in <urcu/hlist.h>. */
#define cds_hlist_for_each_rcu(pos, head)					\
	for (pos = rcu_dereference((head)->next); pos != NULL;			\
			pos = rcu_dereference((pos)->next))

#define cds_hlist_for_each_entry_rcu(entry, pos, head, member)			\
	for (pos = rcu_dereference((head)->next);				\
			pos != NULL && ((entry = _cds_hlist_like(entry, pos, member)), 1);	\
			pos = rcu_dereference((pos)->next))

#define cds_hlist_for_each_entry_rcu_2(entry, head, member)			\
	for (entry = _cds_hlist_like_safe(entry, rcu_dereference((head)->next), member);	\
			entry != NULL;						\
			entry = _cds_hlist_like_safe(entry, rcu_dereference((entry)->member.next), member))

#ifdef __cplusplus
}
#endif

#endif
