// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A thread clears a container under a lock that the deleters take: as long as it holds it, none of
// them returns, and no wait brings room. It waits a few times, and not for each object.

#include <hazard_pointer>

#include <cstdio>
#include <mutex>
#include <sys/resource.h>
#include <thread>

static std::mutex lock;
static std::atomic<int> begun, ended;

struct Object;
struct Deleter {
	void operator()(Object *object) const;
};
struct Object : std::hazard_pointer_obj_base<Object, Deleter> {};

void Deleter::operator()(Object *object) const
{
	begun++;
	std::lock_guard<std::mutex> locked(lock);
	delete object;
	ended++;
}

// How often the calling thread has slept.
static long sleeps()
{
	rusage usage;
	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

int main()
{
	constexpr int objects = 1400; // more than may wait
	long slept;
	{
		std::lock_guard<std::mutex> locked(lock);
		(new Object)->retire();
		while (!begun)
			std::this_thread::yield();
		slept = sleeps();
		for (int each = 0; each < objects; each++)
			(new Object)->retire();
		slept = sleeps() - slept;
	}
	while (ended != objects + 1)
		std::this_thread::yield();
	if (slept < 100)
		std::puts("ok");
	else
		std::printf("slept %ld times\n", slept);
}
