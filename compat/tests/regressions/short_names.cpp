// SPDX-License-Identifier: MIT OR Apache-2.0
//
// <rcu> and <hazard_pointer> after headers of liburcu, whose macro `rcu_barrier` gives the function
// of C++ the name of C's.

#include <urcu.h>

#include <urcu/rculfhash.h>

#include <hazard_pointer>
#include <rcu>

#include <cstdio>

static int deleted;

struct Object : std::rcu_obj_base<Object> {
	~Object() { deleted++; }
};

int main()
{
	(new Object)->retire();
	std::rcu_barrier();
	std::puts(deleted == 1 ? "ok" : "it was not waited for");
}
