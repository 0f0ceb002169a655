/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Through the flavour's structure, so that nothing is inlined.
 *
 * misuse none	passes
 * misuse unlock	leaves a section that it has not entered
 * misuse lock	enters one without having registered
 */
#include "flavor.h"

#include <string.h>

#include "../../examples/check.h"

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	if (strcmp(argv[1], "lock") != 0)
		rcu_flavor.register_thread();
	if (strcmp(argv[1], "unlock") != 0)
		rcu_flavor.read_lock();
	rcu_flavor.read_unlock();
	rcu_flavor.unregister_thread();
	puts("ok");
	return 0;
}
