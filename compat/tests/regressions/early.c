/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A section before any constructor, of the library's too: in a function of the executable's. */
#include "flavor.h"

static int was_inside;

static void read_early(void)
{
	URCU(flavor).register_thread();
	URCU(read_lock)();
	was_inside = !!URCU(read_ongoing)();
	URCU(read_unlock)();
	URCU(flavor).unregister_thread();
}

static void (*const before_constructors)(void)
	__attribute__((section(".preinit_array"), used)) = read_early;

int main(void)
{
	CHECK(was_inside);
	URCU(synchronize_rcu)();
	puts("ok");
	return 0;
}
