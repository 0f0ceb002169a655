/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Doubly linked lists of structures that hold their links themselves. A list is a ring through its
 * head; an empty one is the head alone. For readers without locks there is <urcu/rculist.h>; here
 * updaters exclude each other and readers.
 */
#ifndef _CDS_LIST_H
#define _CDS_LIST_H 1

#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cds_list_head {
	struct cds_list_head *next, *prev;
};

#define CDS_LIST_HEAD_INIT(name)	{ &(name), &(name) }
#define CDS_LIST_HEAD(name)		struct cds_list_head name = CDS_LIST_HEAD_INIT(name)
#define CDS_INIT_LIST_HEAD(ptr)		_cds_list_join((ptr), (ptr))

/* Ours: makes two elements neighbours. */
static __inline__ void _cds_list_join(struct cds_list_head *__before, struct cds_list_head *__after)
{
	__before->next = __after;
	__after->prev = __before;
}

/* At the front. */
static __inline__ void cds_list_add(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_join(newp, head->next);
	_cds_list_join(head, newp);
}

/* At the end. */
static __inline__ void cds_list_add_tail(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_join(head->prev, newp);
	_cds_list_join(newp, head);
}

/* Takes out whatever is between the two. */
static __inline__ void __cds_list_del(struct cds_list_head *prev, struct cds_list_head *next)
{
	_cds_list_join(prev, next);
}

/* elem's own links stay as they are: a thread that still walks the list there finds back to it. */
static __inline__ void cds_list_del(struct cds_list_head *elem)
{
	_cds_list_join(elem->prev, elem->next);
}

/* elem is then a list of its own, and empty. */
static __inline__ void cds_list_del_init(struct cds_list_head *elem)
{
	cds_list_del(elem);
	CDS_INIT_LIST_HEAD(elem);
}

/* From the list it is on to the front of another. */
static __inline__ void cds_list_move(struct cds_list_head *elem, struct cds_list_head *head)
{
	cds_list_del(elem);
	cds_list_add(elem, head);
}

/* Puts _new, which is on no list, where old is. */
static __inline__ void cds_list_replace(struct cds_list_head *old, struct cds_list_head *_new)
{
	struct cds_list_head *__before = old->prev, *__after = old->next;

	_cds_list_join(__before, _new);
	_cds_list_join(_new, __after);
}

static __inline__ void cds_list_replace_init(struct cds_list_head *old, struct cds_list_head *_new)
{
	cds_list_replace(old, _new);
	CDS_INIT_LIST_HEAD(old);
}

static __inline__ int cds_list_empty(struct cds_list_head *head)
{
	return head->next == head;
}

/*
 * All of add, in its order, before the first of head. The head add itself is as before: it has to
 * be made anew.
 */
static __inline__ void cds_list_splice(struct cds_list_head *add, struct cds_list_head *head)
{
	struct cds_list_head *__first = add->next, *__last = add->prev;

	if (__first == add)
		return;
	_cds_list_join(__last, head->next);
	_cds_list_join(head, __first);
}

#define cds_list_entry(ptr, type, member)	caa_container_of((ptr), type, member)
/* Of a list that is not empty. */
#define cds_list_first_entry(ptr, type, member)	cds_list_entry((ptr)->next, type, member)

/*
 * Loops. pos is each link, or with _entry each structure, in turn; in those that end in _safe the
 * body may take pos out of the list, and p is the loop's own.
 */
#define cds_list_for_each(pos, head)						\
	for (pos = (head)->next; pos != (head); pos = (pos)->next)

#define cds_list_for_each_prev(pos, head)					\
	for (pos = (head)->prev; pos != (head); pos = (pos)->prev)

#define cds_list_for_each_safe(pos, p, head)					\
	for (pos = (head)->next; pos != (head) && ((p = (pos)->next), 1); pos = p)

#define cds_list_for_each_prev_safe(pos, p, head)				\
	for (pos = (head)->prev; pos != (head) && ((p = (pos)->prev), 1); pos = p)

/* Ours: the structure like pos that ptr is a link of. */
#define _cds_list_like(pos, ptr, member)	cds_list_entry((ptr), __typeof__(*(pos)), member)

#define cds_list_for_each_entry(pos, head, member)				\
	for (pos = _cds_list_like(pos, (head)->next, member); &(pos)->member != (head);	\
			pos = _cds_list_like(pos, (pos)->member.next, member))

#define cds_list_for_each_entry_reverse(pos, head, member)			\
	for (pos = _cds_list_like(pos, (head)->prev, member); &(pos)->member != (head);	\
			pos = _cds_list_like(pos, (pos)->member.prev, member))

#define cds_list_for_each_entry_safe(pos, p, head, member)			\
	for (pos = _cds_list_like(pos, (head)->next, member);			\
			&(pos)->member != (head)				\
				&& ((p = _cds_list_like(pos, (pos)->member.next, member)), 1);	\
			pos = p)

/* From pos on. */
#define cds_list_for_each_entry_safe_from(pos, p, head, member)			\
	for (; &(pos)->member != (head)						\
				&& ((p = _cds_list_like(pos, (pos)->member.next, member)), 1);	\
			pos = p)

#ifdef __cplusplus
}
#endif

#endif
