/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lists for the buckets of a hash table: doubly linked, not a ring, so that a head is one pointer.
 * For readers without locks there is <urcu/rcuhlist.h>; here updaters exclude each other and
 * readers.
 */
#ifndef _KCOMPAT_HLIST_H
#define _KCOMPAT_HLIST_H

#include <stddef.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An element's link: a member of the structure that is listed. */
struct cds_hlist_node {
	struct cds_hlist_node *next;
	/* The head, as if it were a node, for the first one. */
	struct cds_hlist_node *prev;
};

/* A list's head. */
struct cds_hlist_head {
	struct cds_hlist_node *next;
};

/* An empty list: as an initialiser of `name`; as a definition; at run time, with its address. */
#define CDS_HLIST_HEAD_INIT(name)	{ NULL }
#define CDS_HLIST_HEAD(name)		struct cds_hlist_head name = CDS_HLIST_HEAD_INIT(name)

static __inline__ void CDS_INIT_HLIST_HEAD(struct cds_hlist_head *ptr)
{
	ptr->next = NULL;
}

/*
 * For these headers' own use: the pointer that leads to elem. It is the first member of whatever
 * prev points to, and is reached as a pointer, not as a node's, since that may be a head.
 */
static __inline__ struct cds_hlist_node **_cds_hlist_link_to(struct cds_hlist_node *elem)
{
	return (struct cds_hlist_node **) (void *) elem->prev;
}

/* Adds newp, which is on no list, at the front. */
static __inline__ void cds_hlist_add_head(struct cds_hlist_node *newp, struct cds_hlist_head *head)
{
	struct cds_hlist_node *__second = head->next;

	newp->next = __second;
	newp->prev = (struct cds_hlist_node *) (void *) head;
	if (__second)
		__second->prev = newp;
	head->next = newp;
}

/* Takes elem off its list. Its own links stay as they are. */
static __inline__ void cds_hlist_del(struct cds_hlist_node *elem)
{
	if (elem->next)
		elem->next->prev = elem->prev;
	*_cds_hlist_link_to(elem) = elem->next;
}

/* The structure of that type whose member the link at ptr is; ptr must not be NULL. */
#define cds_hlist_entry(ptr, type, member)	caa_container_of((ptr), type, member)

/* The same; NULL for NULL. ptr is evaluated once. */
#define cds_hlist_entry_safe(ptr, type, member)					\
	__extension__ ({							\
		__typeof__(ptr) __cds_hlist_ptr = (ptr);			\
		__cds_hlist_ptr ? cds_hlist_entry(__cds_hlist_ptr, type, member) : NULL;	\
	})

/*
 * Loops. pos is each link of the list at head, and entry each structure, in turn. In those that end
 * in _safe the body may take it off the list: p or e is a second variable of the same type, for the
 * loop's own use. Those that end in _2 need no pos, and
 * leave entry NULL.
 */
#define cds_hlist_for_each(pos, head)						\
	for (pos = (head)->next; pos != NULL; pos = (pos)->next)

#define cds_hlist_for_each_safe(pos, p, head)					\
	for (pos = (head)->next; pos != NULL && ((p = (pos)->next), 1); pos = p)

/*
 * For these headers' own use: the structure like *entry that ptr, not NULL, is a link of; and the
 * one that may be none.
 */
#define _cds_hlist_like(entry, ptr, member)	cds_hlist_entry((ptr), __typeof__(*(entry)), member)
#define _cds_hlist_like_safe(entry, ptr, member)				\
	cds_hlist_entry_safe((ptr), __typeof__(*(entry)), member)

#define cds_hlist_for_each_entry(entry, pos, head, member)			\
	for (pos = (head)->next;						\
			pos != NULL && ((entry = _cds_hlist_like(entry, pos, member)), 1);	\
			pos = (pos)->next)

#define cds_hlist_for_each_entry_safe(entry, pos, p, head, member)		\
	for (pos = (head)->next;						\
			pos != NULL && ((p = (pos)->next), 1)			\
				&& ((entry = _cds_hlist_like(entry, pos, member)), 1);	\
			pos = p)

#define cds_hlist_for_each_entry_2(entry, head, member)				\
	for (entry = _cds_hlist_like_safe(entry, (head)->next, member); entry != NULL;	\
			entry = _cds_hlist_like_safe(entry, (entry)->member.next, member))

#define cds_hlist_for_each_entry_safe_2(entry, e, head, member)			\
	for (entry = _cds_hlist_like_safe(entry, (head)->next, member);		\
			entry != NULL						\
				&& ((e = _cds_hlist_like_safe(entry, (entry)->member.next, member)), 1);	\
			entry = e)

#ifdef __cplusplus
}
#endif

#endif
