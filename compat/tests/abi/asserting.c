/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Inlined readers with liburcu's assertions (DEBUG_RCU).
 *
 * asserting registered	passes
 * asserting unregistered	aborts, in an assertion of the program's own
 */
#define _LGPL_SOURCE
#include "flavor.h"

#include <string.h>

#include "../../examples/check.h"

#if defined(FLAVOR_QSBR)
# define CHECKS_REGISTRATION rcu_quiescent_state
#else
# define CHECKS_REGISTRATION rcu_read_lock
#endif

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	if (strcmp(argv[1], "registered") == 0)
		rcu_register_thread();
	CHECKS_REGISTRATION();
#if !defined(FLAVOR_QSBR)
	rcu_read_unlock();
#endif
	rcu_unregister_thread();
	puts("ok");
	return 0;
}
