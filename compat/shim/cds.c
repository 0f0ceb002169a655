/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The data of liburcu-cds.so.8: the three ways in which a hash table keeps its buckets. A table finds out which it was
 * given by its functions, since an executable may have a copy of the structure.
 */
#define _GNU_SOURCE
#include <urcu/rculfhash.h>

#define MEMORY(name)									\
	struct cds_lfht *quiescence_cds_lfht_mm_##name##_alloc_cds_lfht(unsigned long, unsigned long,	\
			const struct cds_lfht_alloc *);					\
	void quiescence_cds_lfht_mm_##name##_alloc_bucket_table(struct cds_lfht *, unsigned long);	\
	void quiescence_cds_lfht_mm_##name##_free_bucket_table(struct cds_lfht *, unsigned long);	\
	struct cds_lfht_node *quiescence_cds_lfht_mm_##name##_bucket_at(struct cds_lfht *, unsigned long);	\
	const struct cds_lfht_mm_type cds_lfht_mm_##name = {				\
		.alloc_cds_lfht = quiescence_cds_lfht_mm_##name##_alloc_cds_lfht,	\
		.alloc_bucket_table = quiescence_cds_lfht_mm_##name##_alloc_bucket_table,	\
		.free_bucket_table = quiescence_cds_lfht_mm_##name##_free_bucket_table,	\
		.bucket_at = quiescence_cds_lfht_mm_##name##_bucket_at,			\
	}

MEMORY(order);
MEMORY(chunk);
MEMORY(mmap);

_Static_assert(sizeof(struct cds_lfht_mm_type) == 4 * sizeof(void *), "in the interface");
