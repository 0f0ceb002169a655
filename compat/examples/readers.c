/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Readers and an updater, with the flavour memb: readers find a configuration behind a pointer, the
 * updater replaces it and frees the old one after a grace period.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <urcu/urcu-memb.h>

#include "check.h"

enum {
	READERS = 4,
#ifdef __SANITIZE_THREAD__
	/* Readers are slow then, and a grace period waits for those that have no CPU. */
	VERSIONS = 1000,
#else
	VERSIONS = 20000,
#endif
};

/* Both are written together: a reader that finds them apart has read freed memory. */
struct configuration {
	unsigned long version;
	unsigned long copy;
};

static struct configuration *current;
static atomic_bool is_over;

static struct configuration *configuration(unsigned long version)
{
	struct configuration *new = malloc(sizeof(*new));

	CHECK(new);
	new->version = new->copy = version;
	return new;
}

static void *read_on(void *unused)
{
	unsigned long newest = 0;

	(void)unused;
	urcu_memb_register_thread();
	while (!atomic_load(&is_over)) {
		struct configuration *found;

		/* What is found between the two stays until the second. */
		urcu_memb_read_lock();
		found = rcu_dereference(current);
		CHECK(found->version == found->copy);
		CHECK(found->version >= newest);
		newest = found->version;
		urcu_memb_read_unlock();
	}
	urcu_memb_unregister_thread();
	return NULL;
}

int main(void)
{
	pthread_t readers[READERS];

	rcu_assign_pointer(current, configuration(0));
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_create(&readers[i], NULL, read_on, NULL));
	for (unsigned long version = 1; version <= VERSIONS; version++) {
		struct configuration *old = rcu_xchg_pointer(&current, configuration(version));

		/* Every section that could have found the old one is over then. */
		urcu_memb_synchronize_rcu();
		old->copy = ~0UL;
		free(old);
	}
	atomic_store(&is_over, 1);
	for (int i = 0; i < READERS; i++)
		CHECK(!pthread_join(readers[i], NULL));
	CHECK(current->version == VERSIONS);
	free(current);
	puts("readers: ok");
	return 0;
}
