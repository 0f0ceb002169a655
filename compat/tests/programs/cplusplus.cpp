/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The C headers from C++: all of them in one program, each family used once with objects, callbacks and threads of
 * C++. What the functions promise is tested in C; here it is that they are declared, linked and of the right types.
 */
#include "flavor.h"
#include <urcu/rculfhash.h>
#include <urcu/rculist.h>
#include <urcu/rcuhlist.h>
#include <urcu/list.h>
#include <urcu/hlist.h>
#include <urcu/ref.h>
#include <urcu/uatomic.h>
#include <urcu/pointer.h>
#include <urcu/wfcqueue.h>
#ifdef DEBIAN_HEADERS
/* What Debian's inline from here on is C that C++ does not take. */
#undef _LGPL_SOURCE
#endif
#include <urcu/wfstack.h>
#include <urcu/lfstack.h>
#include <urcu/rculfqueue.h>
#include <urcu/futex.h>

/*
 * In C++ liburcu 0.13 has a conversion named; later ones convert by themselves, and ours does both.
 */
#ifdef LIBURCU_0_13
#define HEAD(head) cds_wfcq_head_cast(head)
#else
#define HEAD(head) (head)
#endif

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

/* Counts its living. */
struct Counted {
	static std::atomic<long> living;
	std::string text;
	rcu_head head;
	cds_list_head links;
	cds_hlist_node link;
	cds_lfht_node node;

	explicit Counted(std::string said) : text(std::move(said))
	{
		living++;
	}

	~Counted()
	{
		living--;
	}
};

std::atomic<long> Counted::living{0};

template <typename Member>
Counted *counted_of(Member *member, Member Counted::*at)
{
	/* As caa_container_of does, without its C. */
	const Counted *none = reinterpret_cast<const Counted *>(alignof(Counted) * 64);
	auto offset = reinterpret_cast<const char *>(&(none->*at)) - reinterpret_cast<const char *>(none);
	return reinterpret_cast<Counted *>(reinterpret_cast<char *>(member) - offset);
}

void counted_delete(rcu_head *head)
{
	delete counted_of(head, &Counted::head);
}

struct Registered {
	Registered()
	{
		rcu_register_thread();
	}

	~Registered()
	{
		rcu_unregister_thread();
	}
};

struct Section {
	Section()
	{
		rcu_read_lock();
	}

	~Section()
	{
		rcu_read_unlock();
	}
};

CASE(publication)
{
	Counted *current = nullptr;
	std::atomic<bool> stop{false};
	std::atomic<long> reads{0};

	rcu_assign_pointer(current, new Counted("text 0"));
	std::thread reader([&] {
		Registered registered;
		while (!stop) {
			{
				Section section;
				Counted *found = rcu_dereference(current);
				CHECK(found->text.compare(0, 5, "text ") == 0);
				reads++;
			}
			rcu_quiescent_state();
		}
	});
	WAIT_UNTIL(reads > 0);
	{
		Registered registered;
		for (int i = 1; i <= 50; i++) {
			Counted *old = rcu_xchg_pointer(&current, new Counted("text " + std::to_string(i)));
			if (i % 25 == 0) {
				synchronize_rcu();
				delete old;
			} else {
				call_rcu(&old->head, counted_delete);
			}
			rcu_quiescent_state();
		}
	}
	stop = true;
	reader.join();
	rcu_barrier();
	CHECK_EQUAL(Counted::living, 1);
	Counted *last = rcu_cmpxchg_pointer(&current, current, static_cast<Counted *>(nullptr));
	CHECK(last != nullptr && current == nullptr);
	delete last;
	rcu_set_pointer(&current, nullptr);
	CHECK_EQUAL(Counted::living, 0);
}

CASE(deferred)
{
	Registered registered;

	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	for (int i = 0; i < 10; i++)
		defer_rcu([](void *counted) { delete static_cast<Counted *>(counted); }, new Counted("deferred"));
	rcu_defer_barrier_thread();
	CHECK_EQUAL(Counted::living, 0);
	rcu_defer_unregister_thread();
}

int same_text(cds_lfht_node *node, const void *key)
{
	return counted_of(node, &Counted::node)->text == *static_cast<const std::string *>(key);
}

CASE(hash_table)
{
	Registered registered;
	cds_lfht *table = cds_lfht_new(1, 1, 0, CDS_LFHT_AUTO_RESIZE | CDS_LFHT_ACCOUNTING, nullptr);
	std::hash<std::string> hash;

	CHECK(table != nullptr);
	for (int i = 0; i < 500; i++) {
		auto *counted = new Counted("key " + std::to_string(i));
		cds_lfht_node_init(&counted->node);
		{
			Section section;
			cds_lfht_node *found = cds_lfht_add_unique(table, hash(counted->text), same_text,
								  &counted->text, &counted->node);
			CHECK(found == &counted->node);
		}
		rcu_quiescent_state();
	}
	{
		Section section;
		cds_lfht_iter iter;
		std::string wanted("key 321");

		cds_lfht_lookup(table, hash(wanted), same_text, &wanted, &iter);
		CHECK(counted_of(cds_lfht_iter_get_node(&iter), &Counted::node)->text == wanted);
		cds_lfht_node *node;
		long count = 0;
		cds_lfht_for_each(table, &iter, node) {
			CHECK_EQUAL(cds_lfht_del(table, node), 0);
			call_rcu(&counted_of(node, &Counted::node)->head, counted_delete);
			count++;
		}
		CHECK_EQUAL(count, 500);
	}
	rcu_quiescent_state();
	CHECK_EQUAL(cds_lfht_destroy(table, nullptr), 0);
	rcu_barrier();
	CHECK_EQUAL(Counted::living, 0);
}

CASE(lists)
{
	CDS_LIST_HEAD(list);
	CDS_HLIST_HEAD(chain);
	std::vector<std::unique_ptr<Counted>> all;
	Registered registered;
	std::string said, chained;

	for (const char *text : { "one", "two", "three" }) {
		all.emplace_back(new Counted(text));
		cds_list_add_tail_rcu(&all.back()->links, &list);
		cds_hlist_add_head_rcu(&all.back()->link, &chain);
	}
	{
		Section section;
		cds_list_head *at;
		cds_hlist_node *in_chain;

		cds_list_for_each_rcu(at, &list)
			said += counted_of(at, &Counted::links)->text + " ";
		cds_hlist_for_each_rcu(in_chain, &chain)
			chained += counted_of(in_chain, &Counted::link)->text + " ";
	}
	CHECK(said == "one two three ");
	CHECK(chained == "three two one ");
	cds_list_del_rcu(&all[1]->links);
	cds_hlist_del_rcu(&all[1]->link);
	CHECK(list.next->next == &all[2]->links);
	synchronize_rcu();
}

struct Number {
	cds_wfcq_node queued;
	cds_wfs_node stacked;
	cds_lfs_node stacked_too;
	cds_lfq_node_rcu queued_too;
	long value;
};

CASE(queues_and_stacks)
{
	cds_wfcq_head head;
	cds_wfcq_tail tail;
	cds_wfs_stack wait_free;
	cds_lfs_stack lock_free;
	cds_lfq_queue_rcu under_rcu;
	/* C++ knows no transparent unions: what is passed is said. */
	cds_wfs_stack_ptr_t wait_free_pointer;
	cds_lfs_stack_ptr_t lock_free_pointer;
	Number numbers[3];
	Registered registered;

	wait_free_pointer.s = &wait_free;
	lock_free_pointer.s = &lock_free;
	cds_wfcq_init(&head, &tail);
	cds_wfs_init(&wait_free);
	cds_lfs_init(&lock_free);
	cds_lfq_init_rcu(&under_rcu, call_rcu);
	CHECK(cds_wfcq_empty(HEAD(&head), &tail));
	for (auto &number : numbers) {
		cds_wfcq_node_init(&number.queued);
		cds_wfs_node_init(&number.stacked);
		cds_lfs_node_init(&number.stacked_too);
		cds_lfq_node_init_rcu(&number.queued_too);
		CHECK_EQUAL(cds_wfcq_enqueue(HEAD(&head), &tail, &number.queued), &number != numbers);
		CHECK_EQUAL(!!cds_wfs_push(wait_free_pointer, &number.stacked), &number != numbers);
		CHECK_EQUAL(cds_lfs_push(lock_free_pointer, &number.stacked_too), &number != numbers);
		Section section;
		cds_lfq_enqueue_rcu(&under_rcu, &number.queued_too);
	}
	cds_wfcq_node *node;
	long count = 0;
	__cds_wfcq_for_each_blocking(HEAD(&head), &tail, node)
		count++;
	CHECK_EQUAL(count, 3);
	for (int i = 0; i < 3; i++) {
		CHECK(cds_wfcq_dequeue_blocking(&head, &tail) == &numbers[i].queued);
		CHECK(cds_wfs_pop_blocking(&wait_free) == &numbers[2 - i].stacked);
		CHECK(cds_lfs_pop_blocking(&lock_free) == &numbers[2 - i].stacked_too);
		Section section;
		CHECK(cds_lfq_dequeue_rcu(&under_rcu) == &numbers[i].queued_too);
	}
	rcu_quiescent_state();
	CHECK_EQUAL(cds_lfq_destroy_rcu(&under_rcu), 0);
	cds_wfcq_destroy(&head, &tail);
	cds_wfs_destroy(&wait_free);
	cds_lfs_destroy(&lock_free);
	rcu_barrier();
}

CASE(atomics)
{
	unsigned long value = 1;
	int small = 5;

	uatomic_set(&value, 7UL);
	CHECK(uatomic_read(&value) == 7);
	CHECK(uatomic_xchg(&value, 9UL) == 7);
	CHECK(uatomic_cmpxchg(&value, 9UL, 10UL) == 9);
	CHECK(uatomic_add_return(&small, 3) == 8);
	CHECK(uatomic_sub_return(&small, 1) == 7);
	uatomic_inc(&small);
	uatomic_dec(&small);
	uatomic_or(&value, 5UL);
	uatomic_and(&value, 14UL);
	CHECK(uatomic_read(&value) == 14);
	CHECK_EQUAL(small, 7);
	cmm_smp_mb();
}

CASE(the_flavour_structure)
{
	const rcu_flavor_struct *flavor = &rcu_flavor;
	rcu_head head;
	static std::atomic<int> called;

	called = 0;
	flavor->register_thread();
	flavor->read_lock();
	CHECK(flavor->read_ongoing());
	flavor->read_unlock();
	flavor->update_call_rcu(&head, [](rcu_head *) { called++; });
	flavor->barrier();
	CHECK_EQUAL(called, 1);
	flavor->update_synchronize_rcu();
	flavor->unregister_thread();
}

CASE(references)
{
	static int released;
	urcu_ref ref;

	released = 0;
	urcu_ref_init(&ref);
	CHECK(urcu_ref_get_unless_zero(&ref));
	urcu_ref_put(&ref, [](urcu_ref *) { released++; });
	CHECK_EQUAL(released, 0);
	urcu_ref_put(&ref, [](urcu_ref *) { released++; });
	CHECK_EQUAL(released, 1);
}

} // namespace
