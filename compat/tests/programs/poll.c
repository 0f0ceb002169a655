/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Cookies, liburcu 0.14's: asked for now, true once a whole grace period has gone by since, and for
 * ever after. By the functions, and by the flavour's structure, of which an executable has a copy.
 */
#include "flavor.h"
#include <urcu/urcu-poll.h>

static void *asks_until_true(void *argument)
{
	int *done = argument;
	struct urcu_gp_poll_state cookie = start_poll_synchronize_rcu();

	/* No thread synchronizes, and it comes true. */
	WAIT_UNTIL(poll_state_synchronize_rcu(cookie));
	flag_set(done);
	return NULL;
}

CASE(comes_true_by_itself)
{
	int done = 0;

	thread_end(thread_start(asks_until_true, &done));
	CHECK(done);
	rcu_register_thread();
	struct urcu_gp_poll_state cookie = start_poll_synchronize_rcu();
	while (!poll_state_synchronize_rcu(cookie)) {
		rcu_quiescent_state();
		sched_yield();
	}
	rcu_unregister_thread();
}

CASE(not_while_a_section_lasts)
{
	struct held_section held = { 0 };
	struct updater updater = { 0 };

	held_section_start(&held);
	struct urcu_gp_poll_state cookie = start_poll_synchronize_rcu();
	CHECK(!poll_state_synchronize_rcu(cookie));
	updater_start(&updater);
	let_others_run();
	CHECK(!poll_state_synchronize_rcu(cookie));
	held_section_end(&held);
	thread_end(updater.thread);
	WAIT_UNTIL(poll_state_synchronize_rcu(cookie));
}

CASE(true_after_a_grace_period)
{
	struct urcu_gp_poll_state cookies[10];

	for (int i = 0; i < 10; i++) {
		cookies[i] = start_poll_synchronize_rcu();
		synchronize_rcu();
		for (int j = 0; j <= i; j++)
			CHECK(poll_state_synchronize_rcu(cookies[j]));
	}
}

READER_CASE(asked_from_a_section)
{
	rcu_read_lock();
	struct urcu_gp_poll_state cookie = start_poll_synchronize_rcu();
	let_others_run();
	/* The asker's own section counts. */
	CHECK(!poll_state_synchronize_rcu(cookie));
	rcu_read_unlock();
	rcu_quiescent_state();
	idle_begin();
	WAIT_UNTIL(poll_state_synchronize_rcu(cookie));
	idle_end();
}

/* An executable has a copy of the structure, which knows both functions. */
static const struct rcu_flavor_struct *volatile flavor = &rcu_flavor;

READER_CASE(by_the_structure)
{
	CHECK(flavor->update_start_poll_synchronize_rcu != NULL);
	CHECK(flavor->update_poll_state_synchronize_rcu != NULL);
	struct urcu_gp_poll_state cookie = flavor->update_start_poll_synchronize_rcu();
	idle_begin();
	WAIT_UNTIL(flavor->update_poll_state_synchronize_rcu(cookie));
	idle_end();
}

#if !IS_BP
void FLAVOR_SYMBOL(exit)(void);
#endif

/* What a program may call at its end; last, therefore. */
CASE(exits)
{
#if !IS_BP
	FLAVOR_SYMBOL(exit)();
#endif
}
