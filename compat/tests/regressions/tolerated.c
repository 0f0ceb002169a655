/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * tolerated MISTAKE: makes a mistake that liburcu survives, three times, and then uses the flavour as it is to be used.
 */
#include "flavor.h"

#include <string.h>

static int called;

static void count(struct rcu_head *head)
{
	(void) head;
	__atomic_fetch_add(&called, 1, __ATOMIC_SEQ_CST);
}

static void *reads(void *entered)
{
	URCU(flavor).register_thread();
	URCU(flavor).read_lock();
	CHECK(URCU(flavor).read_ongoing());
	__atomic_store_n((int *) entered, 1, __ATOMIC_SEQ_CST);
	URCU(flavor).read_unlock();
	URCU(flavor).unregister_thread();
	return NULL;
}

int main(int argc, char **argv)
{
	static struct rcu_head heads[4];
	const char *mistake = argc == 2 ? argv[1] : "";
	const struct rcu_flavor_struct *rcu = &URCU(flavor);
	pthread_t thread;
	int entered = 0;

	rcu->register_thread();
	for (int each = 0; each < 3; each++) {
		if (!strcmp(mistake, "barrier")) {
			rcu->update_call_rcu(&heads[each], count);
			rcu->read_lock();
			rcu->read_lock();
			rcu->barrier();
			CHECK(rcu->read_ongoing());
			rcu->read_unlock();
			rcu->read_unlock();
		} else if (!strcmp(mistake, "unlock")) {
			rcu->read_unlock();
		} else if (!strcmp(mistake, "unregister")) {
			rcu->read_lock();
			rcu->read_lock();
			rcu->unregister_thread();
			rcu->read_unlock();
			rcu->read_unlock();
			rcu->register_thread();
		} else if (!strcmp(mistake, "unregistered")) {
			rcu->unregister_thread();
			rcu->read_lock();
			rcu->update_synchronize_rcu();
			rcu->read_unlock();
			rcu->register_thread();
		} else {
			return 2;
		}
	}

	rcu->read_lock();
	CHECK(rcu->read_ongoing());
	rcu->update_call_rcu(&heads[3], count);
	rcu->read_unlock();
	rcu->update_synchronize_rcu();
	rcu->barrier();
	CHECK(called == (strcmp(mistake, "barrier") ? 1 : 4));
	CHECK(!pthread_create(&thread, NULL, reads, &entered));
	rcu->thread_offline();
	CHECK(!pthread_join(thread, NULL) && entered);
	rcu->thread_online();
	rcu->update_synchronize_rcu();
	rcu->unregister_thread();
	puts("ok");
	return 0;
}
