/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Doubly linked lists of structures with embedded links. A list is a ring through its head; an
 * empty list is the head alone. Updaters must exclude each other and all readers: for readers
 * without locks see <urcu/rculist.h>.
 */
#ifndef _CDS_LIST_H
#define _CDS_LIST_H 1

#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The head of a list, or the link of an element: a member of the element's structure. */
struct cds_list_head {
	struct cds_list_head *next, *prev;
};

/* Make an empty list: an initialiser for `name`; a definition; at run time, from its address. */
#define CDS_LIST_HEAD_INIT(name)	{ &(name), &(name) }
#define CDS_LIST_HEAD(name)		struct cds_list_head name = CDS_LIST_HEAD_INIT(name)
#define CDS_INIT_LIST_HEAD(ptr)		_cds_list_join((ptr), (ptr))

/* Internal: makes two elements neighbours. */
static __inline__ void _cds_list_join(struct cds_list_head *__before, struct cds_list_head *__after)
{
	__before->next = __after;
	__after->prev = __before;
}

/* Adds newp, which is on no list, to the front. */
static __inline__ void cds_list_add(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_join(newp, head->next);
	_cds_list_join(head, newp);
}

/* Adds newp, which is on no list, to the end. */
static __inline__ void cds_list_add_tail(struct cds_list_head *newp, struct cds_list_head *head)
{
	_cds_list_join(head->prev, newp);
	_cds_list_join(newp, head);
}

/* Removes everything between prev and next from their list. */
static __inline__ void __cds_list_del(struct cds_list_head *prev, struct cds_list_head *next)
{
	_cds_list_join(prev, next);
}

/* Removes elem from its list. The links in elem do not change. */
static __inline__ void cds_list_del(struct cds_list_head *elem)
{
	_cds_list_join(elem->prev, elem->next);
}

/* Removes elem from its list, and makes it an empty list. */
static __inline__ void cds_list_del_init(struct cds_list_head *elem)
{
	cds_list_del(elem);
	CDS_INIT_LIST_HEAD(elem);
}

/* Moves elem from its list to the front of another one. */
static __inline__ void cds_list_move(struct cds_list_head *elem, struct cds_list_head *head)
{
	cds_list_del(elem);
	cds_list_add(elem, head);
}

/* Replaces old with _new, which is on no list. */
static __inline__ void cds_list_replace(const struct cds_list_head *old, struct cds_list_head *_new)
{
	struct cds_list_head *__before = old->prev, *__after = old->next;

	_cds_list_join(__before, _new);
	_cds_list_join(_new, __after);
}

/* Replaces old with _new, which is on no list, and makes old an empty list. */
static __inline__ void cds_list_replace_init(struct cds_list_head *old, struct cds_list_head *_new)
{
	cds_list_replace(old, _new);
	CDS_INIT_LIST_HEAD(old);
}

/* Returns nonzero if the list is empty. */
static __inline__ int cds_list_empty(const struct cds_list_head *head)
{
	return head->next == head;
}

/*
 * Moves all elements of add, in their order, to the front of head. The head add does not change:
 * reinitialise it before you use it again.
 */
static __inline__ void cds_list_splice(struct cds_list_head *add, struct cds_list_head *head)
{
	struct cds_list_head *__first = add->next, *__last = add->prev;

	if (__first == add)
		return;
	_cds_list_join(__last, head->next);
	_cds_list_join(head, __first);
}

/* The structure that contains the link at ptr. */
#define cds_list_entry(ptr, type, member)	caa_container_of((ptr), type, member)
/* The first structure of the list at ptr, which must not be empty. */
#define cds_list_first_entry(ptr, type, member)	cds_list_entry((ptr)->next, type, member)

/*
 * Loops over the list at head: pos points to each link in turn, or, in the _entry loops, to each
 * structure. The _prev and _reverse loops start at the end. In a _safe loop the body may remove pos
 * from the list; p is a second variable of the same type, which the loop uses.
 */
#define cds_list_for_each(pos, head)						\
	for (pos = (head)->next; pos != (head); pos = (pos)->next)

#define cds_list_for_each_prev(pos, head)					\
	for (pos = (head)->prev; pos != (head); pos = (pos)->prev)

#define cds_list_for_each_safe(pos, p, head)					\
	for (pos = (head)->next; pos != (head) && ((p = (pos)->next), 1); pos = p)

#define cds_list_for_each_prev_safe(pos, p, head)				\
	for (pos = (head)->prev; pos != (head) && ((p = (pos)->prev), 1); pos = p)

/* Internal: the structure, of the type of *pos, that contains the link at ptr. */
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

/* The same, starting at pos. */
#define cds_list_for_each_entry_safe_from(pos, p, head, member)			\
	for (; &(pos)->member != (head)						\
				&& ((p = _cds_list_like(pos, (pos)->member.next, member)), 1);	\
			pos = p)

#ifdef __cplusplus
}
#endif

#endif
