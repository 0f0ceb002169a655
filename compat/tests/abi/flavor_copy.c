/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An executable with a copy of the flavour's structure, as big as the headers say that it is
 * compiled with: 112 bytes of liburcu 0.13, 128 of 0.14 and later. All that it has room for is in
 * it, and nothing was written behind it.
 *
 * Its argument is the size that it should have.
 */
#include "flavor.h"
#include <urcu/flavor.h>

#include <fcntl.h>
#include <link.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "../../examples/check.h"

extern const struct rcu_flavor_struct rcu_flavor;

/* Whether the dynamic linker has made the page read-only once the program was relocated. */
static int find_page(struct dl_phdr_info *object, size_t size, void *page)
{
	(void)size;
	for (int i = 0; i < object->dlpi_phnum; i++) {
		uintptr_t begin = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
		uintptr_t end = begin + object->dlpi_phdr[i].p_memsz;
		uintptr_t mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

		if (object->dlpi_phdr[i].p_type == PT_GNU_RELRO && (uintptr_t)page >= (begin & mask)
				&& (uintptr_t)page < (end & mask))
			return 1;
	}
	return 0;
}

static int is_protected(const void *place)
{
	uintptr_t mask = ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);

	return dl_iterate_phdr(find_page, (void *)((uintptr_t)place & mask));
}

/* By a system call, which fails where an access would end the program. */
static int is_writable(void *place)
{
	int zero = open("/dev/zero", O_RDONLY);
	char byte = *(char *)place;
	int written;

	CHECK(zero >= 0);
	written = read(zero, place, 1) == 1;
	if (written)
		*(char *)place = byte;
	close(zero);
	return written;
}

int main(int argc, char **argv)
{
	void *const *members = (void *const *)(const void *)&rcu_flavor;
	size_t size = sizeof(rcu_flavor);

	CHECK(argc == 2 && size == (size_t)atoi(argv[1]));
	for (size_t i = 0; i < size / sizeof(void *); i++)
		CHECK(members[i] != NULL);
	/* What the dynamic linker has made read-only is so again. */
	CHECK(is_writable((void *)&members[0]) == !is_protected(&members[0]));
	CHECK(is_writable((void *)&members[size / 8 - 1]) == !is_protected(&members[size / 8 - 1]));
#if defined(MEMBERS_OF_0_14)
	{
		struct urcu_gp_poll_state state;

		rcu_register_thread();
		state = rcu_flavor.update_start_poll_synchronize_rcu();
		rcu_thread_offline();
		while (!rcu_flavor.update_poll_state_synchronize_rcu(state))
			;
		rcu_thread_online();
		rcu_unregister_thread();
	}
#endif
	puts("ok");
	return 0;
}
