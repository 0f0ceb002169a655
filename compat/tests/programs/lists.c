/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Lists: plain and published ones, with one link and with two; reference counts. All of it inlined by the headers,
 * under one flavour's readers.
 */
#include "flavor.h"
#include <limits.h>
#include <urcu/list.h>
#include <urcu/hlist.h>
#include <urcu/rculist.h>
#include <urcu/rcuhlist.h>
#include <urcu/ref.h>

struct item {
	int value;
	struct cds_list_head links;
	struct cds_hlist_node link;
	struct rcu_head head;
};

/* The list's values as one decimal number, first item first: 0 for an empty one. */
static long values(struct cds_list_head *head)
{
	struct item *item;
	long number = 0;

	cds_list_for_each_entry(item, head, links)
		number = number * 10 + item->value;
	/* Backward links agree. */
	long back = 0, place = 1;
	cds_list_for_each_entry_reverse(item, head, links)
		back += place * item->value, place *= 10;
	CHECK_EQUAL(number, back);
	return number;
}

CASE(two_links)
{
	CDS_LIST_HEAD(list);
	struct cds_list_head other = CDS_LIST_HEAD_INIT(other);
	struct item items[10];
	struct cds_list_head *at, *next;
	struct item *item, *next_item;

	for (int i = 0; i < 10; i++)
		items[i].value = i;
	CHECK(cds_list_empty(&list) && cds_list_empty(&other));
	CHECK_EQUAL(values(&list), 0);
	cds_list_add(&items[2].links, &list);
	cds_list_add(&items[1].links, &list);
	cds_list_add_tail(&items[3].links, &list);
	CHECK_EQUAL(values(&list), 123);
	CHECK(!cds_list_empty(&list));
	CHECK(cds_list_first_entry(&list, struct item, links) == &items[1]);
	CHECK(cds_list_entry(list.prev, struct item, links) == &items[3]);
	cds_list_del(&items[2].links);
	CHECK_EQUAL(values(&list), 13);
	cds_list_replace(&items[3].links, &items[4].links);
	CHECK_EQUAL(values(&list), 14);
	cds_list_del_init(&items[4].links);
	CHECK(cds_list_empty(&items[4].links));
	cds_list_add_tail(&items[5].links, &list);
	CHECK_EQUAL(values(&list), 15);
	cds_list_add(&items[6].links, &other);
	cds_list_move(&items[5].links, &other);
	CHECK_EQUAL(values(&list), 1);
	CHECK_EQUAL(values(&other), 56);
	cds_list_splice(&other, &list);
	CHECK_EQUAL(values(&list), 561);
	CDS_INIT_LIST_HEAD(&other);
	cds_list_splice(&other, &list);
	CHECK_EQUAL(values(&list), 561);
	int count = 0;
	cds_list_for_each(at, &list)
		count++;
	CHECK_EQUAL(count, 3);
	cds_list_for_each_prev(at, &list)
		count--;
	CHECK_EQUAL(count, 0);
	cds_list_for_each_safe(at, next, &list)
		if (cds_list_entry(at, struct item, links)->value == 6)
			cds_list_del(at);
	CHECK_EQUAL(values(&list), 51);
	cds_list_for_each_prev_safe(at, next, &list)
		if (cds_list_entry(at, struct item, links)->value == 1)
			cds_list_del(at);
	CHECK_EQUAL(values(&list), 5);
	cds_list_add_tail(&items[7].links, &list);
	cds_list_add_tail(&items[8].links, &list);
	item = &items[7];
	cds_list_for_each_entry_safe_from(item, next_item, &list, links)
		cds_list_del(&item->links);
	CHECK_EQUAL(values(&list), 5);
	cds_list_for_each_entry_safe(item, next_item, &list, links)
		cds_list_del(&item->links);
	CHECK(cds_list_empty(&list));
	/* A whole list handed to another head. */
	cds_list_add_tail(&items[1].links, &list);
	cds_list_add_tail(&items[2].links, &list);
	cds_list_replace_init(&list, &other);
	CHECK(cds_list_empty(&list));
	CHECK_EQUAL(values(&other), 12);
}

static long chain(struct cds_hlist_head *head)
{
	struct item *item;
	long number = 0;

	cds_hlist_for_each_entry_2(item, head, link)
		number = number * 10 + item->value;
	return number;
}

CASE(one_link)
{
	CDS_HLIST_HEAD(list);
	struct cds_hlist_head other = CDS_HLIST_HEAD_INIT(other);
	struct item items[6];
	struct item *item, *next_item;
	struct cds_hlist_node *at, *next;
	int sum = 0;

	for (int i = 0; i < 6; i++)
		items[i].value = i;
	CHECK_EQUAL(chain(&list), 0);
	CDS_INIT_HLIST_HEAD(&other);
	CHECK_EQUAL(chain(&other), 0);
	for (int i = 5; i >= 1; i--)
		cds_hlist_add_head(&items[i].link, &list);
	CHECK_EQUAL(chain(&list), 12345);
	cds_hlist_del(&items[3].link);
	cds_hlist_del(&items[1].link);
	CHECK_EQUAL(chain(&list), 245);
	cds_hlist_del(&items[5].link);
	CHECK_EQUAL(chain(&list), 24);
	cds_hlist_for_each(at, &list)
		sum += cds_hlist_entry(at, struct item, link)->value;
	cds_hlist_for_each_entry(item, at, &list, link)
		sum += item->value;
	CHECK_EQUAL(sum, 12);
	CHECK(cds_hlist_entry_safe((struct cds_hlist_node *)NULL, struct item, link) == NULL);
	cds_hlist_for_each_safe(at, next, &list)
		if (cds_hlist_entry(at, struct item, link)->value == 2)
			cds_hlist_del(at);
	CHECK_EQUAL(chain(&list), 4);
	cds_hlist_add_head(&items[3].link, &list);
	cds_hlist_for_each_entry_safe(item, at, next, &list, link)
		if (item->value == 4)
			cds_hlist_del(&item->link);
	CHECK_EQUAL(chain(&list), 3);
	cds_hlist_for_each_entry_safe_2(item, next_item, &list, link)
		cds_hlist_del(&item->link);
	CHECK_EQUAL(chain(&list), 0);
}

static long published(struct cds_list_head *head)
{
	struct cds_list_head *at;
	struct item *item;
	long number = 0, again = 0;

	cds_list_for_each_entry_rcu(item, head, links)
		number = number * 10 + item->value;
	cds_list_for_each_rcu(at, head)
		again = again * 10 + cds_list_entry(at, struct item, links)->value;
	CHECK_EQUAL(number, again);
	return number;
}

static long published_chain(struct cds_hlist_head *head)
{
	struct cds_hlist_node *at;
	struct item *item;
	long number = 0, second = 0, third = 0;

	cds_hlist_for_each_rcu(at, head)
		number = number * 10 + cds_hlist_entry(at, struct item, link)->value;
	cds_hlist_for_each_entry_rcu(item, at, head, link)
		second = second * 10 + item->value;
	cds_hlist_for_each_entry_rcu_2(item, head, link)
		third = third * 10 + item->value;
	CHECK_EQUAL(number, second);
	CHECK_EQUAL(number, third);
	return number;
}

CASE(published_lists)
{
	CDS_LIST_HEAD(list);
	CDS_HLIST_HEAD(chained);
	struct item items[6];

	for (int i = 0; i < 6; i++)
		items[i].value = i;
	cds_list_add_rcu(&items[2].links, &list);
	cds_list_add_rcu(&items[1].links, &list);
	cds_list_add_tail_rcu(&items[3].links, &list);
	CHECK_EQUAL(published(&list), 123);
	CHECK_EQUAL(values(&list), 123);
	cds_list_replace_rcu(&items[2].links, &items[4].links);
	CHECK_EQUAL(published(&list), 143);
	CHECK_EQUAL(values(&list), 143);
	/* A thread that stands on the replaced item still gets on. */
	CHECK(items[2].links.next == &items[3].links);
	cds_list_del_rcu(&items[4].links);
	CHECK_EQUAL(values(&list), 13);
	CHECK(items[4].links.next == &items[3].links);
	cds_hlist_add_head_rcu(&items[3].link, &chained);
	cds_hlist_add_head_rcu(&items[2].link, &chained);
	cds_hlist_add_head_rcu(&items[1].link, &chained);
	CHECK_EQUAL(published_chain(&chained), 123);
	cds_hlist_del_rcu(&items[2].link);
	CHECK_EQUAL(published_chain(&chained), 13);
	CHECK(items[2].link.next == &items[3].link);
	cds_hlist_del_rcu(&items[1].link);
	cds_hlist_del_rcu(&items[3].link);
	CHECK_EQUAL(published_chain(&chained), 0);
}

struct lists {
	struct cds_list_head list;
	struct cds_hlist_head chain;
	int stop;
	int readers;
	long walks;
};

static void walks(void *argument)
{
	struct lists *lists = argument;
	struct item *item;

	__atomic_add_fetch(&lists->readers, 1, __ATOMIC_SEQ_CST);
	while (!flag_is_set(&lists->stop)) {
		section_begin();
		cds_list_for_each_entry_rcu(item, &lists->list, links)
			CHECK_EQUAL(item->value, 7);
		cds_hlist_for_each_entry_rcu_2(item, &lists->chain, link)
			CHECK_EQUAL(item->value, 7);
		section_end();
		count_add(&lists->walks, 1);
	}
}

static long freed;

static void item_free(struct rcu_head *head)
{
	struct item *item = caa_container_of(head, struct item, head);

	/* A reader that is still on it would see. */
	item->value = -1;
	free(item);
	count_add(&freed, 1);
}

CASE(readers_walk_while_items_go)
{
	enum { ROUNDS = 3000 };
	struct lists lists = { .stop = 0 };
	pthread_t threads[2];

	freed = 0;
	CDS_INIT_LIST_HEAD(&lists.list);
	CDS_INIT_HLIST_HEAD(&lists.chain);
	for (int i = 0; i < 2; i++)
		threads[i] = reader_start(walks, &lists);
	WAIT_UNTIL(__atomic_load_n(&lists.readers, __ATOMIC_SEQ_CST) == 2);
	rcu_register_thread();
	struct item *held[8] = { NULL };
	for (int i = 0; i < ROUNDS; i++) {
		struct item **slot = &held[i % 8];

		if (*slot) {
			cds_list_del_rcu(&(*slot)->links);
			cds_hlist_del_rcu(&(*slot)->link);
			call_rcu(&(*slot)->head, item_free);
		}
		*slot = malloc(sizeof(**slot));
		CHECK(*slot != NULL);
		(*slot)->value = 7;
		if (i % 2)
			cds_list_add_rcu(&(*slot)->links, &lists.list);
		else
			cds_list_add_tail_rcu(&(*slot)->links, &lists.list);
		cds_hlist_add_head_rcu(&(*slot)->link, &lists.chain);
		rcu_quiescent_state();
	}
	idle_begin();
	WAIT_UNTIL(count_of(&lists.walks) > 0);
	flag_set(&lists.stop);
	for (int i = 0; i < 2; i++)
		thread_end(threads[i]);
	idle_end();
	for (int i = 0; i < 8; i++)
		call_rcu(&held[i]->head, item_free);
	rcu_unregister_thread();
	rcu_barrier();
	CHECK_EQUAL(count_of(&freed), ROUNDS);
}

static int released;

static void release(struct urcu_ref *ref)
{
	(void)ref;
	released++;
}

CASE(references)
{
	struct urcu_ref ref;

	released = 0;
	urcu_ref_init(&ref);
	urcu_ref_get(&ref);
	urcu_ref_put(&ref, release);
	CHECK_EQUAL(released, 0);
	CHECK(urcu_ref_get_unless_zero(&ref));
	urcu_ref_put(&ref, release);
	urcu_ref_put(&ref, release);
	CHECK_EQUAL(released, 1);
	CHECK(!urcu_ref_get_unless_zero(&ref));
	urcu_ref_set(&ref, LONG_MAX);
	CHECK(!urcu_ref_get_safe(&ref));
	CHECK(!urcu_ref_get_unless_zero(&ref));
	urcu_ref_set(&ref, LONG_MAX - 1);
	CHECK(urcu_ref_get_safe(&ref));
	urcu_ref_set(&ref, 1);
	urcu_ref_put(&ref, release);
	CHECK_EQUAL(released, 2);
}

/* One reference too many: the process ends. */
CASE(too_many_references)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		struct urcu_ref ref;

		signal(SIGABRT, SIG_DFL);
		urcu_ref_set(&ref, LONG_MAX);
		urcu_ref_get(&ref);
		_exit(0);
	}
	int status = 0;
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status));
	CHECK_EQUAL(WTERMSIG(status), SIGABRT);
}
