/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lists for the buckets of a hash table: doubly linked, but not a ring, so a head is one pointer.
 * Updaters must exclude each other and all readers: for readers without locks see
 * <urcu/rcuhlist.h>.
 */
#ifndef _KCOMPAT_HLIST_H
#define _KCOMPAT_HLIST_H

#include <stddef.h>
#include <urcu/compiler.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The link of an element: a member of the element's structure. */
struct cds_hlist_node {
	struct cds_hlist_node *next;
	/* In the first element: the head, as if it were a node. */
	struct cds_hlist_node *prev;
};

/* The head of a list. */
struct cds_hlist_head {
	struct cds_hlist_node *next;
};

/* Make an empty list: an initialiser for `name`; a definition; at run time, from its address. */
#define CDS_HLIST_HEAD_INIT(name)	{ NULL }
#define CDS_HLIST_HEAD(name)		struct cds_hlist_head name = CDS_HLIST_HEAD_INIT(name)

static __inline__ void CDS_INIT_HLIST_HEAD(struct cds_hlist_head *ptr)
{
	ptr->next = NULL;
}

/*
 * Internal: the address of the pointer that leads to elem. That pointer is the first member of
 * whatever prev points to, a node or a head, so prev is converted to the pointer's address.
 */
static __inline__ struct cds_hlist_node **_cds_hlist_link_to(struct cds_hlist_node *elem)
{
	return (struct cds_hlist_node **) (void *) elem->prev;
}

/* Adds newp, which is on no list, to the front. */
static __inline__ void cds_hlist_add_head(struct cds_hlist_node *newp, struct cds_hlist_head *head)
{
	struct cds_hlist_node *__second = head->next;

	newp->next = __second;
	newp->prev = (struct cds_hlist_node *) (void *) head;
	if (__second)
		__second->prev = newp;
	head->next = newp;
}

/* Removes elem from its list. The links in elem do not change. */
static __inline__ void cds_hlist_del(struct cds_hlist_node *elem)
{
	if (elem->next)
		elem->next->prev = elem->prev;
	*_cds_hlist_link_to(elem) = elem->next;
}

/* The structure that contains the link at ptr, which must not be NULL. */
#define cds_hlist_entry(ptr, type, member)	caa_container_of((ptr), type, member)

/* The same; NULL for NULL. ptr is evaluated once. */
#define cds_hlist_entry_safe(ptr, type, member)					\
	__extension__ ({							\
		__typeof__(ptr) __cds_hlist_ptr = (ptr);			\
		__cds_hlist_ptr ? cds_hlist_entry(__cds_hlist_ptr, type, member) : NULL;	\
	})

/*
 * Loops over the list at head: pos points to each link in turn, and entry to each structure. In a
 * _safe loop the body may remove the element from the list; p or e is a second variable of the same
 * type, which the loop uses. Loops that end in _2 need no pos; after them entry is NULL.
 */
#define cds_hlist_for_each(pos, head)						\
	for (pos = (head)->next; pos != NULL; pos = (pos)->next)

#define cds_hlist_for_each_safe(pos, p, head)					\
	for (pos = (head)->next; pos != NULL && ((p = (pos)->next), 1); pos = p)

/*
 * Internal: the structure, of the type of *entry, that contains the link at ptr, which is not NULL;
 * then the same, but NULL for NULL.
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
