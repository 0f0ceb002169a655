/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A hash table that is looked up inside sections, without locks or waiting, while any number of
 * threads add, replace and delete, lock-free, and while it grows and shrinks (split-ordered lists:
 * Shalev and Shavit, JACM 53(3), 2006).
 *
 * Structures hold their links themselves (struct cds_lfht_node) and belong to the caller. What has
 * been deleted or replaced is freed after a grace period. Keys are the caller's too: a hash, which
 * should be well mixed in its low bits, and a function that compares.
 *
 * All of these are called inside a section, of the flavour the table was made with, except new,
 * destroy and resize.
 */
#ifndef _URCU_RCULFHASH_H
#define _URCU_RCULFHASH_H

#include <pthread.h>
#include <stdint.h>
#include <urcu/compiler.h>
#include <urcu/config.h>

#ifdef __cplusplus
extern "C" {
#endif

struct cds_lfht;
struct rcu_flavor_struct;

/* Aligned, since the low bits of next are flags. */
struct cds_lfht_node {
	struct cds_lfht_node *next;
	unsigned long reverse_hash;
} __attribute__((__aligned__(8)));

/* Where a lookup or a walk has come to. Good until the end of the section. */
struct cds_lfht_iter {
	struct cds_lfht_node *node, *next;
#ifdef CONFIG_CDS_LFHT_ITER_DEBUG
	struct cds_lfht *lfht;
#endif
};

/* NULL: nothing was found, or the walk has come to its end. */
static __inline__ struct cds_lfht_node *cds_lfht_iter_get_node(struct cds_lfht_iter *iter)
{
	return iter->node;
}

/* Not 0 if the structure that node is in has this key. Called inside the section of its caller. */
typedef int (*cds_lfht_match_fct)(struct cds_lfht_node *node, const void *key);

/* Before a node is added. Adding writes all there is to it. */
static __inline__ void cds_lfht_node_init(struct cds_lfht_node *node __attribute__((__unused__)))
{
}

/* Flags of a new table. */
enum {
	/* Grows and shrinks by itself, on a thread of the library's. */
	CDS_LFHT_AUTO_RESIZE = (1U << 0),
	/* Keeps count of its nodes, as resizing by itself does in any case. */
	CDS_LFHT_ACCOUNTING = (1U << 1)
};

/* How a table's buckets lie in memory. One of the library's, or the caller's own. */
struct cds_lfht_mm_type {
	struct cds_lfht *(*alloc_cds_lfht)(unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets);
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
 * A table, or NULL if the sizes are wrong or there is no memory. Sizes are numbers of buckets,
 * powers of two: init_size to begin with; min_nr_alloc_buckets, below which it does not shrink;
 * max_nr_buckets, 0 for no limit, in which case the first of the three ways above is taken, as mm
 * NULL leaves the choice to the library. attr, which may be NULL, is for the threads that resize;
 * it stays the caller's.
 */
extern struct cds_lfht *_cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets,
		unsigned long max_nr_buckets, int flags, const struct cds_lfht_mm_type *mm,
		const struct rcu_flavor_struct *flavor, pthread_attr_t *attr);

static __inline__ struct cds_lfht *cds_lfht_new_flavor(unsigned long init_size,
		unsigned long min_nr_alloc_buckets, unsigned long max_nr_buckets, int flags,
		const struct rcu_flavor_struct *flavor, pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, flavor, attr);
}

/*
 * 0, or a negative errno value: -EPERM, there is something in it. No thread may be using it. *attr, if
 * attr is not NULL, is what it was made with.
 */
extern int cds_lfht_destroy(struct cds_lfht *ht, pthread_attr_t **attr);

/*
 * Counts by walking. Before and after: what the table itself has counted, if it does; both may be
 * off by the changes meanwhile.
 */
extern void cds_lfht_count_nodes(struct cds_lfht *ht, long *split_count_before, unsigned long *count,
		long *split_count_after);

/*
 * The first node with the key; then the next one with the same key; then the first one in the
 * table, and the next.
 */
extern void cds_lfht_lookup(struct cds_lfht *ht, unsigned long hash, cds_lfht_match_fct match,
		const void *key, struct cds_lfht_iter *iter);
extern void cds_lfht_next_duplicate(struct cds_lfht *ht, cds_lfht_match_fct match, const void *key,
		struct cds_lfht_iter *iter);
extern void cds_lfht_first(struct cds_lfht *ht, struct cds_lfht_iter *iter);
extern void cds_lfht_next(struct cds_lfht *ht, struct cds_lfht_iter *iter);

/* Adds, whether the key is there or not. */
extern void cds_lfht_add(struct cds_lfht *ht, unsigned long hash, struct cds_lfht_node *node);

/* Adds if the key is not there. Answers node if so, and the one that is there if not. */
extern struct cds_lfht_node *cds_lfht_add_unique(struct cds_lfht *ht, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node);

/*
 * Adds, in place of what has the key. Answers that one, for the caller to free, or NULL if there
 * was none.
 */
extern struct cds_lfht_node *cds_lfht_add_replace(struct cds_lfht *ht, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *node);

/*
 * new_node in place of what iter has found. 0; -ENOENT if that is gone; -EINVAL if it has another
 * key.
 */
extern int cds_lfht_replace(struct cds_lfht *ht, struct cds_lfht_iter *old_iter, unsigned long hash,
		cds_lfht_match_fct match, const void *key, struct cds_lfht_node *new_node);

/* 0 for the one who has deleted it, who frees it; -ENOENT for all others, and for NULL. */
extern int cds_lfht_del(struct cds_lfht *ht, struct cds_lfht_node *node);

/* Not 0 once it has been deleted or replaced. */
extern int cds_lfht_is_node_deleted(const struct cds_lfht_node *node);

/* Makes it that many buckets. Waits for grace periods. */
extern void cds_lfht_resize(struct cds_lfht *ht, unsigned long new_size);

/*
 * Loops: node is each node, and pos each structure, in turn; NULL at the end. iter's address is
 * given.
 */
#define cds_lfht_for_each(ht, iter, node)						\
	for (cds_lfht_first((ht), (iter));						\
			(node = cds_lfht_iter_get_node(iter)) != NULL;			\
			cds_lfht_next((ht), (iter)))

#define cds_lfht_for_each_duplicate(ht, hash, match, key, iter, node)			\
	for (cds_lfht_lookup((ht), (hash), (match), (key), (iter));			\
			(node = cds_lfht_iter_get_node(iter)) != NULL;			\
			cds_lfht_next_duplicate((ht), (match), (key), (iter)))

/* Ours: pos becomes the structure that iter has come to; whether there is one. */
#define _cds_lfht_take(iter, pos, member)						\
	(cds_lfht_iter_get_node(iter)							\
		? ((pos = caa_container_of(cds_lfht_iter_get_node(iter), __typeof__(*(pos)), member)), 1)	\
		: ((pos = NULL), 0))

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

static __inline__ struct cds_lfht *cds_lfht_new(unsigned long init_size, unsigned long min_nr_alloc_buckets,
		unsigned long max_nr_buckets, int flags, pthread_attr_t *attr)
{
	return _cds_lfht_new(init_size, min_nr_alloc_buckets, max_nr_buckets, flags, NULL, &rcu_flavor, attr);
}

#ifdef __cplusplus
}
#endif
#endif
