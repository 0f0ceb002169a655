// SPDX-License-Identifier: MIT OR Apache-2.0
//
// What the programs of [saferecl] share: deleters of all kinds that the standard admits.

#ifndef TESTS_CPP_SAFERECL_H
#define TESTS_CPP_SAFERECL_H

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

[[noreturn]] inline void failed(const char *file, int line, const char *condition)
{
	std::fprintf(stderr, "%s:%d: %s\n", file, line, condition);
	std::abort();
}

#define CHECK(condition) \
	((condition) ? (void)0 : failed(__FILE__, __LINE__, #condition))

template <class F> void until(F holds)
{
	while (!holds())
		std::this_thread::yield();
}

// Calls of deleters, and the pointer that the last one was given.
inline std::atomic<int> deleted{0};
inline std::atomic<void *> given{nullptr};

template <class T> void deletes(T *object)
{
	given = object;
	delete object;
	deleted++;
}

// Without a size.
struct Stateless {
	template <class T> void operator()(T *object) const { deletes(object); }
};

// With a state, by which it is known.
struct Stateful {
	std::atomic<int> *called = nullptr;
	template <class T> void operator()(T *object)
	{
		deletes(object);
		++*called;
	}
};

// Nothing may derive from it.
struct Final final {
	template <class T> void operator()(T *object) { deletes(object); }
};

// What the standard asks for and no more: made of nothing, and assigned by a move.
struct Least {
	int marked = 0;
	Least() = default;
	explicit Least(int mark) : marked(mark) {}
	Least(Least &&) = delete;
	Least &operator=(Least &&) = default;
	template <class T> void operator()(T *object)
	{
		CHECK(marked == 7 || marked == 0);
		deletes(object);
	}
};

// Moved from place to place, and never copied; called where it was moved to. For objects of no
// destructor.
struct Moved {
	inline static std::atomic<int> copies{0}, calls{0};
	bool is_it = false;
	Moved() = default;
	Moved(const Moved &other) : is_it(other.is_it) { copies++; }
	Moved(Moved &&other) noexcept : is_it(std::exchange(other.is_it, false)) {}
	Moved &operator=(const Moved &other)
	{
		copies++;
		is_it = other.is_it;
		return *this;
	}
	Moved &operator=(Moved &&other) noexcept
	{
		is_it = std::exchange(other.is_it, false);
		return *this;
	}
	void operator()(void *object)
	{
		CHECK(is_it);
		calls++;
		::operator delete(object);
	}
};

#endif
