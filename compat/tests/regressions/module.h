/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What two modules of a process share: an object that may be protected, and what one does for the other. */
#pragma once

#include <hazard_pointer>
#include <rcu>

struct __attribute__((visibility("default"))) Object : std::hazard_pointer_obj_base<Object> {
	std::atomic<bool> *gone;

	explicit Object(std::atomic<bool> *flag) : gone(flag) {}
	~Object() { *gone = true; }
};

struct Other {
	void (*retire)(Object *);
	std::rcu_domain *(*domain)();
};
