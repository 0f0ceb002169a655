// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A deleter of a hazard pointer's object that waits: for grace periods, for callbacks, and by
// retiring others.

#include <hazard_pointer>
#include <rcu>

#include <cstdio>
#include <cstdlib>
#include <thread>

struct Plain : std::rcu_obj_base<Plain> {
	std::atomic<int> *ended;
	explicit Plain(std::atomic<int> *count) : ended(count) {}
	~Plain() { ++*ended; }
};

struct Waiting;
struct Wait {
	void operator()(Waiting *object) const;
};
struct Waiting : std::hazard_pointer_obj_base<Waiting, Wait> {
	std::atomic<int> plain{0};
	std::atomic<int> *ended;
	explicit Waiting(std::atomic<int> *count) : ended(count) {}
};

void Wait::operator()(Waiting *object) const
{
	{
		std::rcu_domain &domain = std::rcu_default_domain();
		domain.lock();
		domain.unlock();
	}
	(new Plain(&object->plain))->retire();
	std::rcu_synchronize();
	std::rcu_barrier();
	if (object->plain != 1)
		std::abort();
	++*object->ended;
	delete object;
}

int main()
{
	std::atomic<int> ended{0};
	for (int each = 0; each < 1100; each++) // more than may wait
		(new Waiting(&ended))->retire();
	while (ended != 1100)
		std::this_thread::yield();
	// In a callback of <rcu>, which the deleter's barrier waits for.
	for (int each = 0; each < 200; each++)
		std::rcu_retire(&ended, [](std::atomic<int> *count) { (new Waiting(count))->retire(); });
	std::rcu_barrier();
	while (ended != 1300)
		std::this_thread::yield();
	std::puts("ok");
}
