// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What we promise beyond [saferecl.hp] (saferecl_hp.cpp): objects are reclaimed without further
// calls. And readers beside updaters.

#include <rcu>

#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "scan.h"

static std::atomic<int> alive;

struct Object : std::hazard_pointer_obj_base<Object> {
	std::atomic<unsigned> state{0x5eed};
	Object() { alive++; }
	~Object()
	{
		state = 0xdead;
		alive--;
	}
};
static_assert(noexcept(std::declval<Object &>().retire()));
static_assert(std::is_trivially_copyable_v<std::hazard_pointer_obj_base<Object>>);

// The base is not the first one, so that the object and what is protected have different addresses.
struct Other {
	virtual ~Other() = default;
	long before = 1;
};
struct Second : Other, std::hazard_pointer_obj_base<Second> {
	Second() { alive++; }
	~Second() override { alive--; }
};

template <class T> static void a_protected_object_stays()
{
	std::atomic<T *> source{new T};
	auto pointer = std::make_hazard_pointer();
	CHECK(!pointer.empty());
	T *object = pointer.protect(source);
	source.load()->retire();
	source = nullptr;
	for (int each = 0; each < 3000; each++)
		(new Object)->retire();
	scan();
	CHECK(alive == 1);
	scan();
	CHECK(alive == 1 && object);
	pointer.reset_protection();
	scan();
	CHECK(alive == 0);
}

static void retired_objects_are_reclaimed_without_further_calls()
{
	int before = alive;
	(new Object)->retire();
	while (alive != before)
		std::this_thread::yield();
}

static void nobody_reads_what_was_reclaimed()
{
	std::atomic<Object *> current{new Object};
	std::atomic<bool> stop{false};
	std::vector<std::thread> readers;
	for (int each = 0; each < 3; each++)
		readers.emplace_back([&] {
			while (!stop) {
				auto pointer = std::make_hazard_pointer();
				Object *object = pointer.protect(current);
				for (int look = 0; look < 10; look++)
					CHECK(object->state == 0x5eed);
			}
		});
	int most = 0;
	for (int each = 0; each < 50000; each++) {
		current.exchange(new Object)->retire();
		most = std::max(most, alive.load());
	}
	CHECK(most < 5000); // 1024, those of the look that is going on, and those of whom no room came in time
	stop = true;
	for (std::thread &reader : readers)
		reader.join();
	current.load()->retire();
	scan();
}

int main()
{
	retired_objects_are_reclaimed_without_further_calls();
	a_protected_object_stays<Object>();
	a_protected_object_stays<Second>();
	nobody_reads_what_was_reclaimed();
	CHECK(alive == 0);
	std::puts("ok");
}
