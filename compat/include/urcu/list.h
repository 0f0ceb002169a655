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

/* A list's head, or an element's link: a member of the structure that is listed. */
struct cds_list_head {
	struct cds_list_head *next, *prev;
};

/* An empty list: as an initialiser of `name`; as a definition; at run time, with its address. */
#define CDS_LIST_HEAD_INIT(name)	{ &(name), &(name) }
#define CDS_LIST_HEAD(name)		struct cds_list_head name = CDS_LIST_HEAD_INIT(name)
#define CDS_INIT_LIST_HEAD(ptr)		_cds_list_join((ptr), (ptr))

/* For these headers' own use: makes two elements neighbours. */
static __inline__ void _cds_list_join(struct cds_list_head *__before, struct cds_list_head *__after)
{
	__before->next = __after;
	__after->prev = __before;
}

/* Adds newp, which is on no list, at the front. */
static __inline__ void cds_list_add(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_join(newp, head->next);
	_cds_list_join(head, newp);
}

/* Adds newp, which is on no list, at the end. */
static __inline__ void cds_list_add_tail(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_join(head->prev, newp);
	_cds_list_join(newp, head);
}

/* Takes whatever is between the two off their list. */
static __inline__ void __cds_list_del(struct cds_list_head *prev, struct cds_list_head *next)
{
	_cds_list_join(prev, next);
}

/* Takes elem off its list. Its own links stay as they are. */
static __inline__ void cds_list_del(struct cds_list_head *elem)
{
	_cds_list_join(elem->prev, elem->next);
}

/* The same; elem is then an empty list of its own. */
static __inline__ void cds_list_del_init(struct cds_list_head *elem)
{
	cds_list_del(elem);
	CDS_INIT_LIST_HEAD(elem);
}

/* Moves elem from the list it is on to the front of another. */
static __inline__ void cds_list_move(struct cds_list_head *elem, struct cds_list_head *head)
{
	cds_list_del(elem);
	cds_list_add(elem, head);
}

/* Puts _new, which is on no list, where old is. */
static __inline__ void cds_list_replace(const struct cds_list_head *old, struct cds_list_head *_new)
{
	struct cds_list_head *__before = old->prev, *__after = old->next;

	_cds_list_join(__before, _new);
	_cds_list_join(_new, __after);
}

/* The same; old is then an empty list of its own. */
static __inline__ void cds_list_replace_init(struct cds_list_head *old, struct cds_list_head *_new)
{
	cds_list_replace(old, _new);
	CDS_INIT_LIST_HEAD(old);
}

/* Returns whether nothing is on the list: not 0 if so. */
static __inline__ int cds_list_empty(const struct cds_list_head *head)
{
	return head->next == head;
}

/*
 * Moves all of add, in its order, before the first of head. The head add itself is as before: it
 * has to be made anew.
 */
static __inline__ void cds_list_splice(struct cds_list_head *add, struct cds_list_head *head)
{
	struct cds_list_head *__first = add->next, *__last = add->prev;

	if (__first == add)
		return;
	_cds_list_join(__last, head->next);
	_cds_list_join(head, __first);
}

/* The structure of that type whose member the link at ptr is. */
#define cds_list_entry(ptr, type, member)	caa_container_of((ptr), type, member)
/* The same for the first one of the list at ptr, which is not empty. */
#define cds_list_first_entry(ptr, type, member)	cds_list_entry((ptr)->next, type, member)

/*
 * Loops. pos is each link of the list at head, or with _entry each structure, in turn; _prev and
 * _reverse begin at the end. In those that end in _safe the body may take pos off the list: p is a
 * second variable of the same type, for the loop's own use.
 */
#define cds_list_for_each(pos, head)						\
	for (pos = (head)->next; pos != (head); pos = (pos)->next)

#define cds_list_for_each_prev(pos, head)					\
	for (pos = (head)->prev; pos != (head); pos = (pos)->prev)

#define cds_list_for_each_safe(pos, p, head)					\
	for (pos = (head)->next; pos != (head) && ((p = (pos)->next), 1); pos = p)

#define cds_list_for_each_prev_safe(pos, p, head)				\
	for (pos = (head)->prev; pos != (head) && ((p = (pos)->prev), 1); pos = p)

/* For these headers' own use: the structure like *pos that ptr is a link of. */
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

/* The same from pos on. */
#define cds_list_for_each_entry_safe_from(pos, p, head, member)			\
	for (; &(pos)->member != (head)						\
				&& ((p = _cds_list_like(pos, (pos)->member.next, member)), 1);	\
			pos = p)

#ifdef __cplusplus
}
#endif

#endif
