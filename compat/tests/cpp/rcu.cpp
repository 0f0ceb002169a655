// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What we promise beyond [saferecl.rcu] (saferecl_rcu.cpp): retire() allocates nothing, and reclaims
// without further calls; C may be used beside it. And readers beside updaters.

#include <rcu>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "saferecl.h"
#include <urcu/urcu-memb.h> // C's names in the same file

// Allocations of the calling thread, counted while it asks for it.
static thread_local bool counting;
static thread_local unsigned long allocations;

extern "C" void *__libc_malloc(size_t size);
extern "C" void *malloc(size_t size)
{
	allocations += counting;
	return __libc_malloc(size);
}

static bool out_of_memory;

[[gnu::noinline]] void *operator new(size_t size)
{
	void *memory = out_of_memory ? nullptr : std::malloc(size);
	if (!memory)
		throw std::bad_alloc();
	return memory;
}
[[gnu::noinline]] void operator delete(void *memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void *memory, size_t) noexcept { std::free(memory); }

// ---- what the types are ------------------------------------------------------------------------------

static_assert(std::is_same_v<std::rcu_domain, quiescence::rcu_domain>);

struct Plain : std::rcu_obj_base<Plain> {
	int value = 0;
};
static_assert(std::is_trivially_copyable_v<Plain>);
static_assert(sizeof(std::rcu_obj_base<Plain>) == 2 * sizeof(void *));
static_assert(noexcept(std::declval<Plain &>().retire()));

struct Careful {
	std::shared_ptr<int> what;
	template <class T> void operator()(T *object) const { delete object; }
};
struct NotTrivial : std::rcu_obj_base<NotTrivial, Careful> {};
static_assert(!std::is_trivially_copyable_v<NotTrivial>);

// ---- sections ----------------------------------------------------------------------------------------

static std::rcu_domain &domain() { return std::rcu_default_domain(); }

static void sections_nest()
{
	CHECK(&std::rcu_default_domain() == &domain());
	std::scoped_lock outer(domain());
	CHECK(urcu_memb_read_ongoing());
	{
		std::unique_lock inner(domain(), std::try_to_lock);
		CHECK(inner.owns_lock());
	}
	CHECK(urcu_memb_read_ongoing());
	urcu_memb_read_lock(); // C's nest in ours
	urcu_memb_read_unlock();
	CHECK(urcu_memb_read_ongoing());
}

struct Flagged : std::rcu_obj_base<Flagged> {
	std::atomic<bool> *gone;
	explicit Flagged(std::atomic<bool> *flag) : gone(flag) {}
	~Flagged() { *gone = true; }
};

// Nothing further is called: neither barrier nor synchronize nor another retire.
static void retire_alone_reclaims()
{
	std::atomic<bool> gone{false};
	(new Flagged(&gone))->retire();
	while (!gone)
		std::this_thread::yield();
}

static void retire_allocates_nothing()
{
	constexpr int objects = 100000;
	std::vector<Plain *> all;
	for (int each = 0; each < objects; each++)
		all.push_back(new Plain);
	counting = true;
	allocations = 0;
	std::free(std::malloc(1));
	CHECK(allocations == 1); // it counts
	{
		std::scoped_lock section(domain());
		for (Plain *object : all)
			object->retire();
	}
	counting = false;
	CHECK(allocations == 1);
	std::rcu_barrier();
}

static std::atomic<int> deleters_alive;

struct Throwing {
	bool throws;
	explicit Throwing(bool does) : throws(does) { deleters_alive++; }
	Throwing(Throwing &&other) : throws(other.throws)
	{
		if (throws)
			throw std::runtime_error("moved");
		deleters_alive++;
	}
	~Throwing() { deleters_alive--; }
	void operator()(int *object) const { delete object; }
};

static void what_throws_schedules_nothing()
{
	int *object = new int(7);
	try {
		std::rcu_retire(object, Throwing(true));
		CHECK(!"not thrown");
	} catch (const std::runtime_error &) {
	}
	out_of_memory = true;
	try {
		std::rcu_retire(object, Throwing(false));
		CHECK(!"not thrown");
	} catch (const std::bad_alloc &) {
	}
	out_of_memory = false;
	std::rcu_barrier();
	CHECK(*object == 7 && deleters_alive == 0);
	std::rcu_retire(object, Throwing(false));
	std::rcu_barrier();
	CHECK(deleters_alive == 0);
}

static void deleters_keep_what_they_are_given()
{
	auto what = std::make_shared<int>(7);
	auto *object = new NotTrivial;
	object->retire(Careful{what});
	std::rcu_retire(new std::string("text"), [what](std::string *text) { delete text; });
	std::rcu_barrier();
	CHECK(what.use_count() == 1);
}

// A deleter may read, and retire another object; barrier waits for what was scheduled before it only.
static void deleters_may_read_and_retire()
{
	std::atomic<bool> gone{false};
	std::rcu_retire(&gone, [](std::atomic<bool> *flag) {
		std::scoped_lock section(domain());
		(new Flagged(flag))->retire();
	});
	std::rcu_barrier();
	std::rcu_barrier();
	CHECK(gone);
}

// A lock that the deleter takes as well may be held around everything but barrier.
static void deleters_do_not_run_under_the_callers_locks()
{
	std::mutex lock;
	std::atomic<int> ran{0};
	struct Counted {
		std::mutex *lock;
		std::atomic<int> *ran;
	};
	auto count = [](Counted *counted) {
		std::scoped_lock held(*counted->lock);
		++*counted->ran;
		delete counted;
	};
	for (int each = 0; each < 1000; each++) {
		std::scoped_lock held(lock);
		std::scoped_lock section(domain());
		std::rcu_retire(new Counted{&lock, &ran}, count);
	}
	{
		std::scoped_lock held(lock);
		std::rcu_synchronize();
	}
	std::rcu_barrier();
	CHECK(ran == 1000);
}

static std::atomic<int> read_at_the_end;

struct ReadsAtTheEnd {
	~ReadsAtTheEnd()
	{
		std::scoped_lock section(domain());
		read_at_the_end++;
	}
};

static void threads_come_and_go()
{
	for (int each = 0; each < 100; each++) {
		std::thread([] {
			static thread_local ReadsAtTheEnd late;
			(void)&late;
			std::scoped_lock section(domain());
		}).join();
	}
	std::rcu_synchronize();
	CHECK(read_at_the_end == 100);
}

// A thread that registers by C's interface as well finds nothing wrong, in either order.
static void c_may_register_too()
{
	std::thread([] {
		{ std::scoped_lock section(domain()); }
		urcu_memb_register_thread();
		{ std::scoped_lock section(domain()); }
		urcu_memb_unregister_thread();
		{ std::scoped_lock section(domain()); }
	}).join();
	std::thread([] {
		urcu_memb_register_thread();
		{ std::scoped_lock section(domain()); }
		urcu_memb_unregister_thread();
	}).join();
	std::rcu_synchronize();
}

struct Poisoned;
struct Poison {
	void operator()(Poisoned *object) const;
};
struct Poisoned : std::rcu_obj_base<Poisoned, Poison> {
	std::atomic<unsigned> state{0x5eed};
};
void Poison::operator()(Poisoned *object) const
{
	object->state = 0xdead;
	delete object;
}

static void nobody_reads_what_was_reclaimed()
{
	std::atomic<Poisoned *> current{new Poisoned};
	std::atomic<bool> stop{false};
	std::vector<std::thread> readers;
	for (int each = 0; each < 3; each++)
		readers.emplace_back([&] {
			while (!stop) {
				std::scoped_lock section(domain());
				Poisoned *object = current.load(std::memory_order_acquire);
				for (int look = 0; look < 10; look++)
					CHECK(object->state == 0x5eed);
			}
		});
	for (int each = 0; each < 20000; each++) {
		Poisoned *old = current.exchange(new Poisoned);
		if (each % 500 == 0) {
			std::rcu_synchronize();
			CHECK(old->state == 0x5eed);
		}
		old->retire();
	}
	stop = true;
	for (std::thread &reader : readers)
		reader.join();
	current.load()->retire();
	std::rcu_barrier();
}

int main()
{
	sections_nest();
	retire_alone_reclaims();
	retire_allocates_nothing();
	what_throws_schedules_nothing();
	deleters_keep_what_they_are_given();
	deleters_may_read_and_retire();
	deleters_do_not_run_under_the_callers_locks();
	threads_come_and_go();
	c_may_register_too();
	nobody_reads_what_was_reclaimed();
	std::puts("ok");
}
