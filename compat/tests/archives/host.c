/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program with memb, out of an archive or shared, that loads the library of its argument. */
#include "../../examples/check.h"

#include <dlfcn.h>
#include <urcu/urcu-memb.h>

int main(int argc, char **argv)
{
	void *library;

	CHECK(argc == 2);
	urcu_memb_synchronize_rcu();
	library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	urcu_memb_synchronize_rcu();
	puts("ok");
	return 0;
}
