// SPDX-License-Identifier: MIT OR Apache-2.0
//
// A module: in an executable or a shared object, linked or loaded, with its symbols hidden or not.
// It retires for the others (other_module), or protects what another one retires
// (protecting_module).

#include "module.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <thread>

#define EXPORTED extern "C" __attribute__((visibility("default")))

static void retire(Object *object) { object->retire(); }

static std::rcu_domain *domain() { return &std::rcu_default_domain(); }

EXPORTED const Other *other_module()
{
	static const Other other = {retire, domain};
	return &other;
}

// Returns when a look has begun after the call, and is over: when the second of two objects is
// reclaimed, one that began with the first in hand is.
static void look(const Other *other)
{
	for (int each = 0; each < 2; each++) {
		std::atomic<bool> gone{false};
		other->retire(new Object(&gone));
		while (!gone)
			std::this_thread::yield();
	}
}

EXPORTED int protecting_module(const Other *other)
{
	std::atomic<bool> gone{false};
	std::atomic<Object *> source{new Object(&gone)};
	auto pointer = std::make_hazard_pointer();
	Object *object = pointer.protect(source);
	source = nullptr;
	other->retire(object);
	look(other);
	if (gone)
		return std::puts("reclaimed while another module protects it"), 1;
	pointer.reset_protection();
	while (!gone)
		look(other);
	if (other->domain() != domain())
		return std::puts("two objects are the default domain"), 2;
	return std::puts("ok"), 0;
}

#if defined(EXECUTABLE)
// With one argument, this module beside one that is loaded; with two, two of those.
static void *loaded(const char *path, const char *name)
{
	void *module = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	void *found = module ? dlsym(module, name) : nullptr;
	if (!found) {
		std::puts(dlerror());
		std::exit(3);
	}
	return found;
}

int main(int count, char **arguments)
{
	auto other_of = [&](int which) {
		return reinterpret_cast<const Other *(*)()>(loaded(arguments[which], "other_module"))();
	};
	if (count == 2)
		return protecting_module(other_of(1));
	auto protecting = reinterpret_cast<int (*)(const Other *)>(loaded(arguments[1], "protecting_module"));
	return protecting(other_of(2));
}
#endif
