// SPDX-License-Identifier: MIT OR Apache-2.0
//
// [saferecl.rcu], paragraph by paragraph: docs/C.md lists which function is which. What is
// ill-formed is in ../cpp.rs.

#include <rcu>

#include "saferecl.h"

#include <semaphore>

template <class T, class D = std::default_delete<T>> using Base = std::rcu_obj_base<T, D>;

static std::rcu_domain &domain() noexcept { return std::rcu_default_domain(); }

struct Node : Base<Node, Stateless> {
	int value = 7;
};

// It holds when all that was retired is reclaimed.
template <class F> static void after_reclamation(F holds)
{
	std::rcu_barrier();
	CHECK(holds());
}

// Retires it. Whether it is reclaimed by the end of a barrier.
template <class T> static bool is_reclaimed(T *object)
{
	int before = deleted;
	object->retire();
	std::rcu_barrier();
	return deleted == before + 1;
}

// A thread in a region of RCU protection, until it is let go, or this ends.
class Reader {
	std::binary_semaphore inside{0}, leaves{0};
	std::thread thread;

public:
	explicit Reader(int nested = 1)
		: thread([this, nested] {
			  for (int each = 0; each < nested; each++)
				  domain().lock();
			  inside.release();
			  leaves.acquire();
			  for (int each = 0; each < nested; each++)
				  domain().unlock();
		  })
	{
		inside.acquire();
	}
	void leave()
	{
		leaves.release();
		thread.join();
	}
};

// ---- [saferecl.rcu.general], [saferecl.rcu.syn]

// The unlocks correspond to the locks from the inside out: only the last one ends the region.
static void regions_nest()
{
	int before = deleted;
	std::binary_semaphore inner_is_over{0}, leaves{0};
	std::thread reader([&] {
		domain().lock();
		domain().lock();
		domain().unlock();
		inner_is_over.release();
		leaves.acquire();
		CHECK(deleted == before);
		domain().unlock();
	});
	inner_is_over.acquire();
	(new Node)->retire();
	for (int each = 0; each < 1000; each++)
		std::this_thread::yield();
	CHECK(deleted == before);
	leaves.release();
	std::rcu_barrier();
	CHECK(deleted == before + 1);
	reader.join();
}

static void what_was_scheduled_waits_for_regions_that_began_before()
{
	int before = deleted;
	Reader reader;
	(new Node)->retire();
	std::rcu_retire(new Node, Stateless());
	for (int each = 0; each < 1000; each++)
		std::this_thread::yield();
	CHECK(deleted == before);
	reader.leave();
	until([&] { return deleted == before + 2; });
}

static void each_is_evaluated_once()
{
	int before = deleted;
	std::vector<std::thread> threads;
	for (int thread = 0; thread < 3; thread++)
		threads.emplace_back([] {
			for (int each = 0; each < 500; each++) {
				(new Node)->retire();
				std::rcu_retire(new Node, Stateless());
				if (each % 100 == 0)
					std::rcu_barrier();
			}
		});
	for (std::thread &thread : threads)
		thread.join();
	std::rcu_barrier();
	CHECK(deleted == before + 3000);
	std::rcu_barrier();
	CHECK(deleted == before + 3000);
}

static_assert(__cpp_lib_rcu == 202306L);
static_assert(std::is_same_v<decltype(std::rcu_default_domain()), std::rcu_domain &>);
static_assert(noexcept(std::rcu_default_domain()));
static_assert(noexcept(std::rcu_synchronize()) && noexcept(std::rcu_synchronize(domain())));
static_assert(noexcept(std::rcu_barrier()) && noexcept(std::rcu_barrier(domain())));
static_assert(!noexcept(std::rcu_retire(std::declval<int *>())));
static_assert(std::is_same_v<Base<Node>, std::rcu_obj_base<Node>>);

// ---- [saferecl.rcu.base]

#include "saferecl_base.h"

static_assert(noexcept(std::declval<Node &>().retire(Stateless(), std::rcu_default_domain())));

static_assert(std::is_trivially_copyable_v<Base<Node, Stateless>>);
static_assert(std::is_trivially_copyable_v<Base<Node, Stateful>>);
static_assert(std::is_trivially_copyable_v<Base<Node, Final>>);
static_assert(std::is_trivially_copyable_v<Base<Node, void (*)(Node *)>>);
static_assert(std::is_trivially_copyable_v<Base<Node>>);

// Not at the beginning of the object, which overloads & besides.
struct Before {
	virtual ~Before() = default;
	long first = 1;
};
struct Second : Before, Base<Second, Stateless> {
	Second *operator&() { return nullptr; }
};

static void the_deleter_is_given_the_object()
{
	auto *object = new Second;
	object->retire();
	std::rcu_barrier();
	CHECK(given == static_cast<void *>(object));
}

static void the_deleter_is_moved_along()
{
	struct ByMoved : Base<ByMoved, Moved> {};
	Moved deleter, other;
	deleter.is_it = other.is_it = true;
	(new ByMoved)->retire(std::move(deleter));
	std::rcu_retire(::operator new(8), std::move(other));
	std::rcu_barrier();
	CHECK(Moved::calls == 2 && Moved::copies == 0 && !deleter.is_it && !other.is_it);
}

// ---- [saferecl.rcu.domain]

static_assert(!std::is_copy_constructible_v<std::rcu_domain>);
static_assert(!std::is_copy_assignable_v<std::rcu_domain>);
static_assert(!std::is_move_constructible_v<std::rcu_domain>);
static_assert(!std::is_move_assignable_v<std::rcu_domain>);
static_assert(!std::is_default_constructible_v<std::rcu_domain>);
static_assert(std::is_void_v<decltype(domain().lock())> && noexcept(domain().lock()));
static_assert(std::is_void_v<decltype(domain().unlock())> && noexcept(domain().unlock()));
static_assert(std::is_same_v<decltype(domain().try_lock()), bool> && noexcept(domain().try_lock()));

static void a_domain_is_a_lock_for_all_that_take_one()
{
	std::mutex mutex;
	{
		std::scoped_lock<std::rcu_domain> section(domain());
	}
	{
		std::lock_guard<std::rcu_domain> section(domain());
	}
	{
		std::unique_lock<std::rcu_domain> section(domain(), std::defer_lock);
		CHECK(section.try_lock() && section.owns_lock());
		section.unlock();
		section.lock();
	}
	{
		std::scoped_lock both(mutex, domain());
	}
	std::lock(domain(), mutex);
	mutex.unlock();
	domain().unlock();
	struct Refuses {
		void lock() {}
		bool try_lock() { return false; }
		void unlock() {}
	} refuses;
	CHECK(std::try_lock(domain(), refuses) == 1); // and the region is closed again
	std::rcu_synchronize(); // in no region
}

// Threads are in regions at once, without a data race on the domain.
static void regions_are_shared()
{
	Reader one, other(3);
	domain().lock();
	CHECK(domain().try_lock());
	domain().unlock();
	domain().unlock();
	one.leave();
	other.leave();
}

static void try_lock_opens_a_region()
{
	int before = deleted;
	CHECK(domain().try_lock());
	std::thread([] { (new Node)->retire(); }).join();
	for (int each = 0; each < 1000; each++)
		std::this_thread::yield();
	CHECK(deleted == before);
	domain().unlock();
	std::rcu_barrier();
	CHECK(deleted == before + 1);
}

static std::rcu_domain *found_early = &std::rcu_default_domain();

static void the_default_domain_is_one_object()
{
	CHECK(&std::rcu_default_domain() == found_early);
	std::thread([] { CHECK(&std::rcu_default_domain() == found_early); }).join();
}

static void synchronize_waits_for_regions()
{
	int written_inside = 0; // no atomic: the unlock happens before the return
	std::atomic<bool> is_over{false};
	std::binary_semaphore inside{0}, leaves{0};
	std::thread reader([&] {
		std::scoped_lock section(domain());
		inside.release();
		leaves.acquire();
		CHECK(!is_over);
		written_inside = 1;
	});
	inside.acquire();
	std::thread waiter([&] {
		std::rcu_synchronize(domain());
		is_over = true;
		CHECK(written_inside == 1);
	});
	for (int each = 0; each < 1000; each++)
		std::this_thread::yield();
	leaves.release();
	waiter.join();
	reader.join();
}

static void barrier_waits_for_what_was_scheduled()
{
	int done = 0; // no atomic: the evaluations happen before the return
	for (int each = 0; each < 100; each++)
		std::rcu_retire(&done, [](int *count) { ++*count; });
	std::rcu_barrier(domain());
	CHECK(done == 100);
}

// Neither of the two is the other: a barrier with nothing scheduled waits for no region.
static void barrier_implies_no_synchronize()
{
	Reader reader;
	std::rcu_barrier();
	reader.leave();
}

static void retire_takes_any_pointer_and_deleter()
{
	int before = deleted;
	std::atomic<int> called{0};
	std::rcu_retire(new int(1));
	std::rcu_retire(new Node, Stateful{&called});
	std::rcu_retire(new int(2), &deletes<int>);
	std::rcu_retire(new int(3), [](int *object) { deletes(object); }, domain());
	struct Only { // moved, not copied, and called as it is
		std::unique_ptr<int> held;
		void operator()(int *object)
		{
			CHECK(*held == *object);
			deletes(object);
		}
	};
	std::rcu_retire(new int(4), Only{std::make_unique<int>(4)});
	std::rcu_barrier();
	CHECK(deleted == before + 4 && called == 1);
}

int main()
{
	regions_nest();
	what_was_scheduled_waits_for_regions_that_began_before();
	each_is_evaluated_once();
	objects_are_copied_and_moved();
	the_object_may_be_incomplete_where_its_base_is_named();
	any_function_object_is_a_deleter();
	a_deleter_need_only_be_made_and_assigned();
	the_deleter_is_given_the_object();
	the_deleter_is_moved_along();
	a_domain_is_a_lock_for_all_that_take_one();
	regions_are_shared();
	try_lock_opens_a_region();
	the_default_domain_is_one_object();
	synchronize_waits_for_regions();
	barrier_waits_for_what_was_scheduled();
	barrier_implies_no_synchronize();
	retire_takes_any_pointer_and_deleter();
	std::puts("ok");
}
