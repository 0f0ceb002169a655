/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Every macro of the headers, in use, without a warning: in C from C89 on, and in C++. Only compiled; what the macros do
 * is checked elsewhere.
 */
#include <stddef.h>
#include <urcu/annotate.h>
#include <urcu/assert.h>
#include <urcu/cds.h>
#include <urcu/debug.h>
#include <urcu/futex.h>
#include <urcu/ref.h>
#include <urcu/tls-compat.h>
#include <urcu.h>
/* Again, now that the short names are there. */
#include <urcu/rculfhash.h>

struct item {
	struct item *next;
	long key;
	struct cds_list_head link;
	struct cds_hlist_node bucket;
	struct cds_lfht_node node;
	struct rcu_head head;
	struct urcu_ref ref;
};

enum color { RED, GREEN };

extern struct item *place;
extern const long constant;
extern volatile unsigned short flag;
extern unsigned char byte;
extern enum color color;
extern void (*function)(void);
CDS_LIST_HEAD(list);
CDS_HLIST_HEAD(buckets);

extern DECLARE_URCU_TLS(int, own);
DEFINE_URCU_TLS(int, own);
DEFINE_URCU_TLS_INIT(int, other, 3);

urcu_static_assert(sizeof(char) == 1, "a char is a byte", a_char_is_a_byte);

/* Each with a prototype: C89 has it that way, and so do warnings. */
long atomics(struct item *item);
long orders(struct item *item);
long publication(struct item *item);
long lists(struct item *item);
long buckets_and_tables(struct item *item, struct cds_lfht *table);
void queues(struct item *item);
int matches(struct cds_lfht_node *node, const void *key);
void release(struct urcu_ref *ref);
void reclaim(struct rcu_head *head);

long atomics(struct item *item)
{
	CAA_BUILD_BUG_ON(sizeof(char) != 1);
	uatomic_set(&place, NULL);
	uatomic_set(&place, item);
	uatomic_set(&color, GREEN);
	uatomic_set(&function, NULL);
	uatomic_inc(&flag);
	uatomic_dec(&flag);
	uatomic_add(&byte, -1);
	uatomic_sub(&byte, 1);
	uatomic_or(&place, 1);
	uatomic_and(&place, ~1UL);
	uatomic_xchg(&place, NULL);
	uatomic_cmpxchg(&place, NULL, item);
	uatomic_cmpxchg(&color, RED, GREEN);
	cmm_smp_mb__before_uatomic_add();
	cmm_smp_mb__after_uatomic_dec();
	cmm_mb();
	cmm_rmb();
	cmm_wmb();
	cmm_smp_mb();
	cmm_smp_rmb();
	cmm_smp_wmb();
	cmm_smp_mc();
	cmm_smp_read_barrier_depends();
	caa_cpu_relax();
	CMM_STORE_SHARED(flag, 3);
	urcu_assert(item != NULL);
	return CMM_LOAD_SHARED(constant) + uatomic_read(&constant) + uatomic_add_return(&byte, 2)
		+ uatomic_sub_return(&flag, 2) + caa_max(1, 2) + (long) CAA_ARRAY_SIZE("four")
		+ caa_is_signed_type(unsigned long) + URCU_TLS(own) + URCU_TLS(other);
}

/* Those of liburcu 0.14 and 0.15. */
long orders(struct item *item)
{
	cmm_annotate_define(group);

	uatomic_store(&place, NULL);
	uatomic_store(&place, item, CMM_RELEASE);
	uatomic_set(&flag, 1, CMM_SEQ_CST_FENCE);
	uatomic_inc(&flag, CMM_RELAXED);
	uatomic_dec(&flag, CMM_ACQ_REL);
	uatomic_add(&byte, -1, CMM_RELEASE);
	uatomic_sub(&byte, 1, CMM_SEQ_CST_FENCE);
	uatomic_or(&place, 1, CMM_ACQUIRE);
	uatomic_and(&place, ~1UL, CMM_SEQ_CST);
	uatomic_xchg(&place, NULL, CMM_ACQ_REL);
	uatomic_cmpxchg(&place, NULL, item, CMM_RELEASE);
	uatomic_cmpxchg(&place, NULL, item, CMM_ACQ_REL, CMM_RELAXED);
	uatomic_cmpxchg_mo(&color, RED, GREEN, CMM_SEQ_CST_FENCE, CMM_ACQUIRE);
	uatomic_or_mo(&flag, 1, CMM_RELAXED);
	cmm_seq_cst_fence_after_atomic(CMM_SEQ_CST_FENCE);
	cmm_emit_legacy_smp_mb();
	cmm_annotate_mem_acquire(&place);
	cmm_annotate_mem_release(&place);
	cmm_annotate_group_mem_acquire(&group, &place);
	cmm_annotate_group_mem_release(&group, &place);
	cmm_annotate_group_mb_acquire(&group);
	cmm_annotate_group_mb_release(&group);
	urcu_posix_assert(item != NULL);
	urcu_assert_debug(item != NULL);
	return *cmm_cast_volatile(&item->key) + (uatomic_load(&place) != NULL)
		+ uatomic_load(&constant, CMM_ACQUIRE) + uatomic_read(&flag, CMM_SEQ_CST_FENCE)
		+ uatomic_add_return(&byte, 2, CMM_RELAXED) + uatomic_sub_return(&flag, 2, CMM_SEQ_CST)
		+ uatomic_load_mo(&constant, CMM_CONSUME) + CAA_COMBINE_TOKENS(1, 2)
		+ cmm_to_c11(CMM_ACQUIRE) + cmm_ptr_eq(item, place)
		+ (caa_container_of_check_null(&item->link, struct item, link) == item);
}

long publication(struct item *item)
{
	struct item *found;

	rcu_assign_pointer(place, item);
	rcu_assign_pointer(place->next, NULL);
	rcu_set_pointer(&place, item);
	rcu_read_lock();
	found = rcu_dereference(place);
	rcu_dereference(function);
	rcu_read_unlock();
	found = rcu_xchg_pointer(&place, found);
	found = rcu_cmpxchg_pointer(&place, found, NULL);
	urcu_ref_init(&item->ref);
	if (urcu_ref_get_unless_zero(&item->ref))
		urcu_ref_put(&item->ref, release);
	call_rcu(&item->head, reclaim);
	return rcu_read_ongoing() + (found != NULL);
}

long lists(struct item *item)
{
	struct cds_list_head *link, *spare;
	struct item *pos, *then;
	const struct item *seen;
	long sum = cds_list_empty(&list);

	cds_list_add_rcu(&item->link, &list);
	cds_list_for_each(link, &list)
		sum++;
	cds_list_for_each_prev(link, &list)
		sum++;
	cds_list_for_each_safe(link, spare, &list)
		cds_list_del(link);
	cds_list_for_each_prev_safe(link, spare, &list)
		cds_list_del_init(link);
	cds_list_for_each_rcu(link, &list)
		sum++;
	cds_list_for_each_entry(pos, &list, link)
		sum += pos->key;
	cds_list_for_each_entry_reverse(pos, &list, link)
		sum += pos->key;
	cds_list_for_each_entry_safe(pos, then, &list, link)
		cds_list_del_rcu(&pos->link);
	pos = cds_list_first_entry(&list, struct item, link);
	cds_list_for_each_entry_safe_from(pos, then, &list, link)
		cds_list_move(&pos->link, &list);
	cds_list_for_each_entry_rcu(seen, &list, link)
		sum += seen->key;
	return sum;
}

int matches(struct cds_lfht_node *node, const void *key)
{
	return caa_container_of(node, struct item, node)->key == *(const long *) key;
}

long buckets_and_tables(struct item *item, struct cds_lfht *table)
{
	struct cds_hlist_node *pos, *spare;
	struct cds_lfht_iter iter;
	struct cds_lfht_node *node;
	struct item *entry, *then;
	long sum = 0;

	cds_hlist_add_head_rcu(&item->bucket, &buckets);
	cds_hlist_for_each(pos, &buckets)
		sum++;
	cds_hlist_for_each_rcu(pos, &buckets)
		sum++;
	cds_hlist_for_each_safe(pos, spare, &buckets)
		cds_hlist_del(pos);
	cds_hlist_for_each_entry(entry, pos, &buckets, bucket)
		sum += entry->key;
	cds_hlist_for_each_entry_rcu(entry, pos, &buckets, bucket)
		sum += entry->key;
	cds_hlist_for_each_entry_safe(entry, pos, spare, &buckets, bucket)
		cds_hlist_del_rcu(&entry->bucket);
	cds_hlist_for_each_entry_2(entry, &buckets, bucket)
		sum += entry->key;
	cds_hlist_for_each_entry_rcu_2(entry, &buckets, bucket)
		sum += entry->key;
	cds_hlist_for_each_entry_safe_2(entry, then, &buckets, bucket)
		cds_hlist_del(&entry->bucket);

	cds_lfht_node_init(&item->node);
	cds_lfht_for_each(table, &iter, node)
		sum++;
	cds_lfht_for_each_entry(table, &iter, entry, node)
		sum += entry->key;
	cds_lfht_for_each_duplicate(table, 1, matches, &constant, &iter, node)
		sum++;
	cds_lfht_for_each_entry_duplicate(table, 1, matches, &constant, &iter, entry, node)
		sum += entry->key;
	return sum + (cds_lfht_new(1, 1, 0, CDS_LFHT_AUTO_RESIZE, NULL) != NULL)
		+ (cds_lfht_new_flavor(1, 1, 0, 0, &rcu_flavor, NULL) != NULL);
}

/*
 * The functions that take either head or stack are given one and the other, in C++ as in C. In C that is a GNU extension,
 * which a program that asks for pedantry is warned of.
 */
#ifndef PEDANTIC
void queues(struct item *item)
{
	struct cds_wfcq_head head;
	struct __cds_wfcq_head bare;
	struct cds_wfcq_tail tail;
	struct cds_wfcq_node *node, *next;
	struct cds_wfs_stack stack;
	struct __cds_wfs_stack bare_stack;
	struct cds_wfs_node *pushed, *below;
	struct cds_lfs_stack lfs;
	struct __cds_lfs_stack bare_lfs;
	struct cds_lfs_node *element, *under;

	cds_wfcq_init(&head, &tail);
	__cds_wfcq_init(&bare, &tail);
	cds_wfcq_enqueue(&head, &tail, &item->head.next);
	cds_wfcq_enqueue(&bare, &tail, &item->head.next);
	cds_wfcq_enqueue(cds_wfcq_head_cast(&head), &tail, &item->head.next);
	cds_wfcq_enqueue(__cds_wfcq_head_cast(&bare), &tail, &item->head.next);
	if (__cds_wfcq_splice_blocking(&head, &tail, &bare, &tail) == CDS_WFCQ_RET_SRC_EMPTY)
		return;
	__cds_wfcq_for_each_blocking(&head, &tail, node)
		(void) node;
	__cds_wfcq_for_each_blocking_safe(&bare, &tail, node, next)
		(void) node;

	cds_wfs_push(&stack, (struct cds_wfs_node *) item);
	cds_wfs_push(&bare_stack, (struct cds_wfs_node *) item);
	cds_wfs_for_each_blocking(__cds_wfs_pop_all(&stack), pushed)
		(void) pushed;
	cds_wfs_for_each_blocking_safe(__cds_wfs_pop_all(&bare_stack), pushed, below)
		(void) pushed;

	cds_lfs_push(&lfs, (struct cds_lfs_node *) item);
	cds_lfs_push(&bare_lfs, (struct cds_lfs_node *) item);
	cds_lfs_for_each(__cds_lfs_pop_all(&lfs), element)
		(void) element;
	cds_lfs_for_each_safe(__cds_lfs_pop_all(&bare_lfs), element, under)
		(void) element;
}
#endif
