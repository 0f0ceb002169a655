/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour qsbr: a section costs a reader nothing, and an event loop says once a round that it
 * holds no reference. A thread that waits for something else goes offline meanwhile.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <urcu/urcu-qsbr.h>

#include "check.h"

enum {
	LOOPS = 2,
	UPDATES = 200,
	OF_A_ROUND = 50,
	ALIVE = 0x600d,
	DEAD = 0xdead,
};

struct route {
	_Atomic int state;
	unsigned long number;
};

static struct route *route;
static atomic_bool is_over;
static atomic_ulong rounds;

static void *serve(void *unused)
{
	(void)unused;
	urcu_qsbr_register_thread();
	while (!atomic_load(&is_over)) {
		for (int packet = 0; packet < OF_A_ROUND; packet++) {
			struct route *found;

			urcu_qsbr_read_lock();
			found = rcu_dereference(route);
			CHECK(atomic_load(&found->state) == ALIVE);
			urcu_qsbr_read_unlock();
		}
		/* No reference is held here. */
		urcu_qsbr_quiescent_state();
		atomic_fetch_add(&rounds, 1);
	}
	urcu_qsbr_unregister_thread();
	return NULL;
}

static struct route *new_route(unsigned long number)
{
	struct route *new = calloc(1, sizeof(*new));

	CHECK(new);
	new->number = number;
	atomic_store(&new->state, ALIVE);
	return new;
}

int main(void)
{
	pthread_t loops[LOOPS];

	route = new_route(0);
	for (int i = 0; i < LOOPS; i++)
		CHECK(!pthread_create(&loops[i], NULL, serve, NULL));
	while (!atomic_load(&rounds))
		sched_yield();
	urcu_qsbr_register_thread();
	for (unsigned long number = 1; number <= UPDATES; number++) {
		struct route *old = rcu_xchg_pointer(&route, new_route(number));

		/* A thread that waits for a grace period is offline meanwhile by itself. */
		urcu_qsbr_synchronize_rcu();
		atomic_store(&old->state, DEAD);
		free(old);
	}
	atomic_store(&is_over, 1);
	/* One that waits for anything else says so: no updater waits for it then. */
	urcu_qsbr_thread_offline();
	for (int i = 0; i < LOOPS; i++)
		CHECK(!pthread_join(loops[i], NULL));
	urcu_qsbr_thread_online();
	urcu_qsbr_unregister_thread();
	CHECK(route->number == UPDATES);
	free(route);
	puts("qsbr: ok");
	return 0;
}
