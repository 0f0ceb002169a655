/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A thread empties a table under a lock that its callbacks take, and goes over the limit: as long
 * as it holds the lock no callback returns, and no wait brings room. It waits now and then, and not
 * in each call. QUIESCENCE_LIMIT_OBJECTS is LIMIT.
 */
#include "flavor.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

enum { LIMIT = 1000, OVER = 500 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct rcu_head heads[LIMIT + OVER];
static int begun, ended;

static void count(struct rcu_head *unused)
{
	(void)unused;
	__atomic_fetch_add(&begun, 1, __ATOMIC_SEQ_CST);
	pthread_mutex_lock(&lock);
	ended++;
	pthread_mutex_unlock(&lock);
}

/* How often the calling thread has slept. */
static long sleeps(void)
{
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	return usage.ru_nvcsw;
}

int main(void)
{
	long slept;

	pthread_mutex_lock(&lock);
	URCU(call_rcu)(&heads[0], count);
	while (!__atomic_load_n(&begun, __ATOMIC_SEQ_CST))
		sched_yield();
	slept = sleeps();
	for (int each = 1; each < LIMIT + OVER; each++)
		URCU(call_rcu)(&heads[each], count);
	slept = sleeps() - slept;
	pthread_mutex_unlock(&lock);
	URCU(barrier)();
	CHECK(ended == LIMIT + OVER);
	if (slept < 100)
		puts("ok");
	else
		printf("slept %ld times\n", slept);
	return 0;
}
