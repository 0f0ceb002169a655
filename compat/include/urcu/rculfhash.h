/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hash table: look-ups run inside sections, without locks or waiting, while any number of
 * threads add, replace and delete nodes, lock-free, and while it grows and shrinks (split-ordered
 * lists: Shalev and Shavit, JACM 53(3), 2006).
 *
 * Structures hold their links themselves (struct cds_lfht_node) and belong to the caller, which
 * frees a deleted or replaced one after a grace period. The caller also defines keys, by a hash,
 * whose low bits should be well mixed, and a function that compares.
 *
 * All of these are called inside a section, of the flavour the table was made with, except new,
 * destroy and resize.
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
 * A node: a member of the structure that is put into a table. (Aligned, since the low bits of next
 * are flags.)
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

/* Returns the node at iter; NULL: nothing was found, or the walk is at its end. */
static __inline__ struct cds_lfht_node *cds_lfht_iter_get_node(const struct cds_lfht_iter *iter)
{
	return iter->node;
}

/*
 * The caller's comparison: not 0 if the structure that contains node has this key. It is called
 * inside the section of the call to which it is passed.
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
	/* Keeps count of its nodes, as resizing by itself does in any case. */
	CDS_LFHT_ACCOUNTING = (1U << 1)
};

/*
 * Where a table's memory is from, in place of malloc() and its kin. The functions are those of the
 * standard library with `state` in front, and all of them are present. They are called by threads
 * that make, resize or destroy the table and by the library's thread that resizes tables, never in
 * a section. The structure is copied when a table is made; the object at state must stay valid. In
 * liburcu since 0.15.
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
 * How a table's buckets lie in memory: programs pass the address of one of the library's three.
 * (alloc_cds_lfht has its third parameter since liburcu 0.15; it is not looked at.)
 */
struct cds_lfht_mm_type {
	struct cds_lfht *(*alloc_cds_lfht)(unsigned long min_nr_alloc_buckets,
			unsigned long max_nr_buckets, const struct cds_lfht_alloc *alloc);
	void (*alloc_bucket_table)(struct cds_lfht *ht, unsigned long order);
	void (*free_bucket_table)(struct cds_lfht *ht, unsigned long order);
	struct cds_lfht_node *(*bucket_at)(struct cds_lfht *ht, unsigned long index);
};

/*
 * In arrays each twice as long as the one before; in chunks of one size; in one range of addresses,
 * as big as it may get.
 */
extern const struct cds_lfht_mm_type cds_lfht_mm_order;
extern const struct cds_lfht_mm_type cds_lfht_mm_chunk;
extern const struct cds_lfht_mm_type cds_lfht_mm_mmap;

/*
 * Makes a table, and returns it, or NULL if the sizes are wrong or there is no memory. Sizes are
 * numbers of buckets, powers of two: init_size to begin with; min_nr_alloc_buckets, below which it
 * does not shrink; max_nr_buckets, 0 for no limit. With mm NULL the library chooses: the first of
 * the three ways above without a limit, else the third. attr, which may be NULL, is for the threads
 * that resize; it stays the caller's. By any thread; does not wait for readers.
 */
extern struct cds_lfht *_cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets,
		unsigned long max_nr_buckets, int flags, const struct cds_lfht_mm_type *mm,
		const struct rcu_flavor_struct *flavor, pthread_attr_t *attr);

/* The same with the memory of an allocator; NULL is the library's own. */
extern struct cds_lfht *_cds_lfht_new_with_alloc(unsigned long init_size,
		unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
		const struct cds_lfht_mm_type *mm, const struct rcu_flavor_struct *flavor,
		const struct cds_lfht_alloc *alloc, pthread_attr_t *attr);

/* Makes a table for a flavour: as _cds_lfht_new(), with the library's choice of memory. */
static __inline__ struct cds_lfht *cds_lfht_new_flavor(unsigned long init_size,
		unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
		const struct rcu_flavor_struct *flavor, pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, flavor, attr);
}

/* The same with the memory of an allocator. liburcu has it since 0.15. */
static __inline__ struct cds_lfht *cds_lfht_new_with_flavor_alloc(unsigned long init_size,
		unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
		const struct rcu_flavor_struct *flavor, const struct cds_lfht_alloc *alloc,
		pthread_attr_t *attr)
{
	return _cds_lfht_new_with_alloc(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL,
			flavor, alloc, attr);
}

/*
 * Frees a table that no other thread uses. Returns 0, or -EPERM if there is something in it; then
 * it stays whole. *attr, if attr is not NULL, is what it was made with. In a section or not; waits
 * for no reader.
 */
extern int cds_lfht_destroy(struct cds_lfht *ht, pthread_attr_t **attr);

/*
 * Counts the nodes by walking: *count. Before and after that, what the table itself has counted, if
 * it does; both may be off by the changes meanwhile. Inside a section.
 */
extern void cds_lfht_count_nodes(struct cds_lfht *ht, long *split_count_before, unsigned long *count,
		long *split_count_after);

/*
 * Looks for the first node of this hash that matches; then for the next one that does. What is
 * found is in iter: cds_lfht_iter_get_node(). Inside a section. Neither blocks.
 */
extern void cds_lfht_lookup(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match,
		const void *key, struct cds_lfht_iter *iter);
extern void cds_lfht_next_duplicate(struct cds_lfht *ht, cds_lfht_match_fct match, const void *key,
		struct cds_lfht_iter *iter);

/* Walk through the table: iter comes to its first node; to the next one. Inside a section. */
extern void cds_lfht_first(struct cds_lfht *ht, struct cds_lfht_iter *iter);
extern void cds_lfht_next(struct cds_lfht *ht, struct cds_lfht_iter *iter);

/*
 * Adds a node, whether its key is present or not, behind those of the same hash. Inside a section.
 * Lock-free, except for growing; a full fence.
 */
extern void cds_lfht_add(struct cds_lfht *ht, unsigned long hash, struct cds_lfht_node *node);

/*
 * Adds a node if no other one matches. Returns node, if it was added; else the one that is there.
 * Inside a section. As above.
 */
extern struct cds_lfht_node *cds_lfht_add_unique(struct cds_lfht *ht, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node);

/*
 * Adds a node in place of the one that matches. Returns that one, which the caller frees after a
 * grace period, or NULL if there was none. Inside a section. As above.
 */
extern struct cds_lfht_node *cds_lfht_add_replace(struct cds_lfht *ht, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node);

/*
 * Replaces the node that iter has found by new_node, for all readers at one moment. Returns 0;
 * -ENOENT if that node is gone, or nothing was found; -EINVAL if it has another key. Inside the
 * section in which it was found.
 */
extern int cds_lfht_replace(struct cds_lfht *ht, struct cds_lfht_iter *old_iter, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *new_node);

/*
 * Deletes a node. Returns 0 to the one caller that has deleted it, which must free it after a grace
 * period; -ENOENT to all others, and for NULL. Inside the section in which it was found.
 */
extern int cds_lfht_del(struct cds_lfht *ht, struct cds_lfht_node *node);

/* Returns whether a node has been deleted or replaced: not 0 if so. Inside a section. */
extern int cds_lfht_is_node_deleted(const struct cds_lfht_node *node);

/*
 * Resizes the table to this many buckets, within its limits. Blocks for grace periods: not in a
 * section.
 */
extern void cds_lfht_resize(struct cds_lfht *ht, unsigned long new_size);

/* The structure of that type whose member the node at ptr is; NULL for NULL. */
#define cds_lfht_entry(ptr, type, member)	caa_container_of_check_null((ptr), type, member)

/*
 * Loops, inside a section: node is each node of the table, or each one that matches, in turn; NULL
 * at the end. iter is the address of a struct cds_lfht_iter. The body may delete node.
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
 * For these headers' own use: pos becomes the structure that iter has come to; whether there is
 * one.
 */
#define _cds_lfht_take(iter, pos, member)						\
	((pos = cds_lfht_entry(cds_lfht_iter_get_node(iter), __typeof__(*(pos)), member)) != NULL)

/* The same: pos is the structure that the node is in. */
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

/* Once, where the short names are there to say which flavour: the first time that they are. */
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
