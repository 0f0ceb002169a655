/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * defer_rcu: for what has no rcu_head in it, such as a string. A function and its argument are
 * called after a grace period; the barrier waits until all have been.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <urcu/urcu-memb.h>

#include "check.h"

enum {
	STRINGS = 50000,
};

static char *current;
static atomic_bool is_over;
static atomic_ulong freed;

static void free_string(void *string)
{
	memset(string, '?', strlen(string));
	free(string);
	atomic_fetch_add(&freed, 1);
}

static void *read_on(void *unused)
{
	(void)unused;
	urcu_memb_register_thread();
	while (!atomic_load(&is_over)) {
		char *found;

		urcu_memb_read_lock();
		found = rcu_dereference(current);
		CHECK(!found || (found[0] == 'n' && strlen(found) >= 2));
		urcu_memb_read_unlock();
	}
	urcu_memb_unregister_thread();
	return NULL;
}

int main(void)
{
	pthread_t reader;

	CHECK(!urcu_memb_defer_register_thread());
	CHECK(!pthread_create(&reader, NULL, read_on, NULL));
	for (unsigned long number = 0; number < STRINGS; number++) {
		char text[32], *new, *old;

		snprintf(text, sizeof(text), "n%lu", number);
		new = strdup(text);
		CHECK(new);
		old = rcu_xchg_pointer(&current, new);
		if (old)
			urcu_memb_defer_rcu(free_string, old);
	}
	urcu_memb_defer_barrier();
	CHECK(atomic_load(&freed) == STRINGS - 1);
	atomic_store(&is_over, 1);
	CHECK(!pthread_join(reader, NULL));
	urcu_memb_defer_unregister_thread();
	free(current);
	puts("defer: ok");
	return 0;
}
