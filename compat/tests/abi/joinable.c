/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * multipathd 0.9.4 makes a worker of its own, asks for its thread, frees the worker and then joins the thread: it must be
 * joinable, no other thread may have joined it, and it must end.
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#include <pthread.h>

#include "../../examples/check.h"

static int calls;

static void called(struct rcu_head *head)
{
	(void)head;
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

int main(void)
{
	struct call_rcu_data *worker;
	struct rcu_head heads[3];
	pthread_t thread;
	int i;

	rcu_register_thread();
	worker = create_call_rcu_data(0, -1);
	CHECK(worker);
	set_thread_call_rcu_data(worker);
	CHECK(get_thread_call_rcu_data() == worker && get_call_rcu_data() == worker);
	thread = get_call_rcu_thread(worker);
	CHECK(!pthread_equal(thread, pthread_self()));
	for (i = 0; i < 3; i++)
		call_rcu(&heads[i], called);
	rcu_barrier();
	CHECK(__atomic_load_n(&calls, __ATOMIC_RELAXED) == 3);
	set_thread_call_rcu_data(NULL);
	call_rcu_data_free(worker);
	CHECK(pthread_join(thread, NULL) == 0);
	rcu_unregister_thread();
	puts("ok");
	return 0;
}
