// SPDX-License-Identifier: MIT OR Apache-2.0
// <rcu> of C++26, as C++20: a section is a lock that is never waited for, and what was replaced is
// retired. A thread becomes a reader in its first section, by itself.
#include <rcu>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int readers = 3;
constexpr int updates = 20000;
std::atomic<int> alive;

struct message : std::rcu_obj_base<message> {
	explicit message(int number) : text("message " + std::to_string(number)) { ++alive; }
	~message()
	{
		text = "gone";
		--alive;
	}
	std::string text;
};

void check(bool condition, const char *what)
{
	if (!condition) {
		std::fprintf(stderr, "cxx: %s\n", what);
		std::abort();
	}
}

} // namespace

int main()
{
	std::atomic<message *> current{new message(0)};
	std::atomic<bool> is_over{false};
	std::vector<std::thread> threads;

	for (int i = 0; i < readers; ++i)
		threads.emplace_back([&] {
			while (!is_over) {
				std::scoped_lock section(std::rcu_default_domain());
				const message *found = current.load(std::memory_order_acquire);

				check(found->text.starts_with("message "), "freed in a section");
			}
		});
	for (int number = 1; number <= updates; ++number)
		current.exchange(new message(number))->retire();
	is_over = true;
	for (auto &thread : threads)
		thread.join();
	// All that was retired is gone.
	std::rcu_barrier();
	check(alive == 1, "not all that was retired is gone");
	delete current.load();
	std::puts("cxx: ok");
}
