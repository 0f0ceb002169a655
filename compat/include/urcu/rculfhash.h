/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hash table: look-ups run inside sections, without locks or waiting, while any number of
 * threads add, replace and delete nodes, lock-free, and while it grows and shrinks (split-ordered
 * lists: Shalev and Shavit, JACM 53(3), 2006).
 *
 * Structures have embedded links (struct cds_lfht_node) and belong to the caller, which frees a
 * deleted or replaced one after a grace period. The caller also defines keys, by a hash, whose low
 * bits should be well mixed, and a function that compares.
 *
 * All functions except new, destroy and resize must be called inside a section of the flavour that
 * the table was made with.
 */
#ifndef _URCU_RCULFHASH_H
#define _URCU_RCULFHASH_H

#include <pthread.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/compiler.h>
#include <urcu/config.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cds_lfht;
struct rcu_flavor_struct;

/*
 * A node: a member of the structure that is added to a table. It is aligned, since the low bits of
 * next are flags.
 */
struct cds_lfht_node {
	struct cds_lfht_node *next;
	unsigned long reverse_hash;
} __attribute__((__aligned__(8)));

/* The position of a lookup or a walk. Valid until the end of the section. */
struct cds_lfht_iter {
	struct cds_lfht_node *node, *next;
#ifdef CONFIG_CDS_LFHT_ITER_DEBUG
	struct cds_lfht *lfht;
#endif
};

/* Returns the node at iter, or NULL if nothing was found or the walk has ended. */
static __inline__ struct cds_lfht_node *cds_lfht_iter_get_node(const struct cds_lfht_iter *iter)
{
	return iter->node;
}

/*
 * The caller's comparison: returns nonzero if the structure that contains node has this key. It is
 * called inside the section of the call to which it is passed.
 */
typedef int (*cds_lfht_match_fct)(struct cds_lfht_node *node, const void *key);

/* Prepares a node before it is added. A no-op: adding a node writes all of it. */
static __inline__ void cds_lfht_node_init(struct cds_lfht_node *node __attribute__((__unused__)))
{
}

/*
 * Makes cds_lfht_is_node_deleted() report a node that is in no table as deleted, until it is
 * added. In liburcu since 0.14.
 */
extern void cds_lfht_node_init_deleted(struct cds_lfht_node *node);

/* Flags of a new table. */
enum {
	/* Grows and shrinks by itself. */
	CDS_LFHT_AUTO_RESIZE = (1U << 0),
	/* Counts its nodes. A table that resizes itself always does. */
	CDS_LFHT_ACCOUNTING = (1U << 1)
};

/*
 * An allocator for a table. The functions are those of the standard library with `state` as an
 * additional first argument; all must be present. They are called by threads that make, resize or
 * destroy the table, and by the library's thread that resizes tables, never in a section. The
 * structure is copied when a table is made; the object at state must stay valid. In liburcu since
 * 0.15.
 */
struct cds_lfht_alloc {
	void *(*malloc)(void *state, size_t size);
	void *(*calloc)(void *state, size_t nmemb, size_t size);
	void *(*realloc)(void *state, void *ptr, size_t size);
	void *(*aligned_alloc)(void *state, size_t alignment, size_t size);
	void (*free)(void *state, void *ptr);
	void *state;
};

/*
 * How a table's buckets are laid out in memory: programs pass the address of one of the library's
 * three types. (alloc_cds_lfht has its third parameter since liburcu 0.15. The library ignores it.)
 */
struct cds_lfht_mm_type {
	struct cds_lfht *(*alloc_cds_lfht)(unsigned long min_nr_alloc_buckets,
			unsigned long max_nr_buckets, const struct cds_lfht_alloc *alloc);
	void (*alloc_bucket_table)(struct cds_lfht *ht, unsigned long order);
	void (*free_bucket_table)(struct cds_lfht *ht, unsigned long order);
	struct cds_lfht_node *(*bucket_at)(struct cds_lfht *ht, unsigned long index);
};

/*
 * In arrays, each twice as long as the one before; in chunks of one size; in one range of addresses
 * that is large enough for the largest size.
 */
extern const struct cds_lfht_mm_type cds_lfht_mm_order;
extern const struct cds_lfht_mm_type cds_lfht_mm_chunk;
extern const struct cds_lfht_mm_type cds_lfht_mm_mmap;

/*
 * Makes a table. Returns NULL if the sizes are wrong or there is no memory. Sizes are numbers of
 * buckets, powers of two: init_size at first; min_nr_alloc_buckets, below which the table does not
 * shrink; max_nr_buckets, 0 for no limit. If mm is NULL the library chooses the first of the three
 * types above, or the third if there is a limit. attr, which may be NULL, is for the threads that
 * resize; it belongs to the caller. By any thread; does not wait for readers.
 */
extern struct cds_lfht *_cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets,
		unsigned long max_nr_buckets, int flags, const struct cds_lfht_mm_type *mm,
		const struct rcu_flavor_struct *flavor, pthread_attr_t *attr);

/* The same, with an allocator; NULL stands for the library's own. */
extern struct cds_lfht *_cds_lfht_new_with_alloc(unsigned long init_size,
		unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
		const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor,
		const struct cds_lfht_alloc *alloc, pthread_attr_t *attr);

/* Makes a table for a flavour, as _cds_lfht_new() does with mm NULL. */
static __inline__ struct cds_lfht *cds_lfht_new_flavor(unsigned long init_size,
		unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
		const struct rcu_flavor_struct *flavor, pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, flavor, attr);
}

/* The same, with an allocator. liburcu has it since 0.15. */
static __inline__ struct cds_lfht *cds_lfht_new_with_flavor_alloc(unsigned long init_size,
		unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
		const struct rcu_flavor_struct *flavor, const struct cds_lfht_alloc *alloc,
		pthread_attr_t *attr)
{
	return _cds_lfht_new_with_alloc(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL,
			flavor, alloc, attr);
}

/*
 * Frees a table that no other thread uses. Returns 0, or -EPERM if the table is not empty; then
 * nothing changes. If attr is not NULL, *attr is set to the attr of its creation. Inside a section
 * or not; waits for no reader.
 */
extern int cds_lfht_destroy(struct cds_lfht *ht, pthread_attr_t **attr);

/*
 * Counts the nodes by a walk: *count. The other two are the table's own count before and after the
 * walk, if it counts. All may be off by concurrent changes. Inside a section.
 */
extern void cds_lfht_count_nodes(struct cds_lfht *ht, long *split_count_before, unsigned long *count,
		long *split_count_after);

/*
 * Find the first node with this hash that matches, and the next one. The result is in iter: see
 * cds_lfht_iter_get_node(). Inside a section. Neither blocks.
 */
extern void cds_lfht_lookup(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match,
		const void *key, struct cds_lfht_iter *iter);
extern void cds_lfht_next_duplicate(struct cds_lfht *ht, cds_lfht_match_fct match, const void *key,
		struct cds_lfht_iter *iter);

/* Walk through the table: set iter to its first node; to the next one. Inside a section. */
extern void cds_lfht_first(struct cds_lfht *ht, struct cds_lfht_iter *iter);
extern void cds_lfht_next(struct cds_lfht *ht, struct cds_lfht_iter *iter);

/*
 * Adds a node, whether or not its key is present, behind other nodes of its hash. Inside a section.
 * Lock-free, unless the table grows. A full fence.
 */
extern void cds_lfht_add(struct cds_lfht *ht, unsigned long hash, struct cds_lfht_node *node);

/*
 * Adds a node if no node matches. Returns node if it was added, otherwise the one that matches.
 * Inside a section. As above.
 */
extern struct cds_lfht_node *cds_lfht_add_unique(struct cds_lfht *ht, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node);

/*
 * Adds a node, or replaces the one that matches. Returns the replaced node, which the caller frees
 * after a grace period, or NULL if no node matched. Inside a section. As above.
 */
extern struct cds_lfht_node *cds_lfht_add_replace(struct cds_lfht *ht, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node);

/*
 * Replaces the node at iter with new_node, for all readers at one moment. Returns 0; -ENOENT if
 * that node is gone, or nothing was found; -EINVAL if the keys differ. Inside the section in which
 * the node was found.
 */
extern int cds_lfht_replace(struct cds_lfht *ht, struct cds_lfht_iter *old_iter, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *new_node);

/*
 * Deletes a node. Returns 0 to the one caller that deletes it, which frees it after a grace period;
 * -ENOENT to all others, and for NULL. Inside the section in which the node was found.
 */
extern int cds_lfht_del(struct cds_lfht *ht, struct cds_lfht_node *node);

/* Returns nonzero if a node has been deleted or replaced. Inside a section. */
extern int cds_lfht_is_node_deleted(const struct cds_lfht_node *node);

/*
 * Resizes the table to this many buckets, within its limits. Waits for grace periods: must not be
 * called in a section.
 */
extern void cds_lfht_resize(struct cds_lfht *ht, unsigned long new_size);

/* The structure that contains the node at ptr; NULL for NULL. */
#define cds_lfht_entry(ptr, type, member)	caa_container_of_check_null((ptr), type, member)

/*
 * Loops, inside a section: node points to each node of the table, or to each one that matches, in
 * turn; after the loop it is NULL. iter is the address of a struct cds_lfht_iter. The body may
 * delete node.
 */
#define cds_lfht_for_each(ht, iter, node)						\
	for (cds_lfht_first((ht), (iter));						\
			(node = cds_lfht_iter_get_node(iter)) != NULL;			\
			cds_lfht_next((ht), (iter)))

#define cds_lfht_for_each_duplicate(ht, hash, match, key, iter, node)			\
	for (cds_lfht_lookup((ht), (hash), (match), (key), (iter));			\
			(node = cds_lfht_iter_get_node(iter)) != NULL;			\
			cds_lfht_next_duplicate((ht), (match), (key), (iter)))

/*
 * Internal: sets pos to the structure at iter. False if there is none.
 */
#define _cds_lfht_take(iter, pos, member)						\
	((pos = cds_lfht_entry(cds_lfht_iter_get_node(iter), __typeof__(*(pos)), member)) != NULL)

/* The same: pos points to the structure that contains the node. */
#define cds_lfht_for_each_entry(ht, iter, pos, member)					\
	for (cds_lfht_first((ht), (iter)); _cds_lfht_take((iter), pos, member);		\
			cds_lfht_next((ht), (iter)))

#define cds_lfht_for_each_entry_duplicate(ht, hash, match, key, iter, pos, member)	\
	for (cds_lfht_lookup((ht), (hash), (match), (key), (iter));			\
			_cds_lfht_take((iter), pos, member);				\
			cds_lfht_next_duplicate((ht), (match), (key), (iter)))

#ifdef __cplusplus
}
#endif

#endif

/* Defined once, when the short names first say which flavour it is. */
#if defined(URCU_API_MAP) && defined(rcu_flavor) && !defined(_URCU_RCULFHASH_NEW)
#define _URCU_RCULFHASH_NEW

#include <urcu/flavor.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Makes a table for the flavour of the short names: as cds_lfht_new_flavor(). */
static __inline__ struct cds_lfht *cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets,
		unsigned long max_nr_buckets, int flags, pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, &rcu_flavor, attr);
}

#ifdef __cplusplus
}
#endif
#endif
