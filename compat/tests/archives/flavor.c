/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A flavour that is linked out of its archive: readers, updaters and callbacks beside a hash
 * table, by the program about that; grace periods and deferred calls; and a constructor of the
 * program's own that reads.
 */
#include "../programs/lfht_load.c"

/* A constructor may come before any of the library's. */
static void __attribute__((constructor)) read_early(void)
{
	rcu_register_thread();
	section_begin();
	section_end();
	rcu_unregister_thread();
}

static void deferred(void *calls)
{
	count_add((long *)calls, 1);
}

CASE(grace_periods_and_deferred_calls)
{
	struct updater updater = { 0 };
	struct held_section held = { .done = &updater.done };
	long calls = 0;

	held_section_start(&held);
	updater_start(&updater);
	held_section_end(&held);
	thread_end(updater.thread);
	rcu_register_thread();
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	for (int i = 0; i < 2000; i++)
		defer_rcu(deferred, &calls);
	rcu_defer_barrier();
	CHECK_EQUAL(count_of(&calls), 2000);
	rcu_defer_unregister_thread();
	rcu_unregister_thread();
}
