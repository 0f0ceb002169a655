/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * call_rcu with a bound: the updater does not wait for a grace period with each object, and the
 * memory that waits stays bounded nevertheless. A program says its limit by the environment, before
 * it starts; this one starts itself again.
 *
 * On liburcu there is no limit, and this program fails: as many objects wait as there is memory.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>
#include <urcu/urcu-memb.h>

#include "check.h"

enum {
	LIMIT = 1000,
	OBJECTS = 100000,
};

struct object {
	unsigned long number;
	struct rcu_head head;
};

static struct object *current;
static atomic_ulong freed, waiting_max;
static atomic_bool is_over;

static void free_object(struct rcu_head *head)
{
	free(caa_container_of(head, struct object, head));
	atomic_fetch_add(&freed, 1);
}

static void *read_on(void *unused)
{
	unsigned long newest = 0;

	(void)unused;
	urcu_memb_register_thread();
	while (!atomic_load(&is_over)) {
		struct object *found;

		urcu_memb_read_lock();
		found = rcu_dereference(current);
		CHECK(!found || found->number >= newest);
		newest = found ? found->number : 0;
		urcu_memb_read_unlock();
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void start_again_with_a_limit(char **argv)
{
	char limit[16];

	if (getenv("QUIESCENCE_LIMIT_OBJECTS"))
		return;
	snprintf(limit, sizeof(limit), "%d", LIMIT);
	CHECK(!setenv("QUIESCENCE_LIMIT_OBJECTS", limit, 1));
	execv("/proc/self/exe", argv);
	perror("/proc/self/exe");
	abort();
}

int main(int argc, char **argv)
{
	pthread_t reader;

	(void)argc;
	start_again_with_a_limit(argv);
	CHECK(!pthread_create(&reader, NULL, read_on, NULL));
	for (unsigned long number = 1; number <= OBJECTS; number++) {
		struct object *new = calloc(1, sizeof(*new)), *old;
		unsigned long waiting;

		CHECK(new);
		new->number = number;
		old = rcu_xchg_pointer(&current, new);
		if (!old)
			continue;
		/* Outside of a section, so that it may wait for room; 10 ms at most. */
		urcu_memb_call_rcu(&old->head, free_object);
		waiting = number - 1 - atomic_load(&freed);
		if (waiting > atomic_load(&waiting_max))
			atomic_store(&waiting_max, waiting);
	}
	atomic_store(&is_over, 1);
	CHECK(!pthread_join(reader, NULL));
	/* All callbacks that were queued have run. */
	urcu_memb_barrier();
	CHECK(atomic_load(&freed) == OBJECTS - 1);
	/* Where the worker got no CPU for the 10 ms, one more waits. */
	CHECK(atomic_load(&waiting_max) <= 2 * LIMIT);
	free(current);
	puts("call_rcu: ok");
	return 0;
}
