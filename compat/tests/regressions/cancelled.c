/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A cancelled thread makes mistakes that liburcu survives: their messages do not end it. */
#include "flavor.h"

#include <errno.h>
#include <pthread.h>

static int reached;

static void *errs(void *nothing)
{
	URCU(register_thread)();
	pthread_cancel(pthread_self());
	errno = 1234;
	URCU(read_unlock)();
	reached = 1;
	URCU(read_lock)();
	URCU(barrier)();
	CHECK(errno == 1234);
	reached = 2;
	URCU(read_unlock)();
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
	URCU(flavor).unregister_thread();
	return nothing;
}

int main(void)
{
	pthread_t thread;
	void *result;

	CHECK(!pthread_create(&thread, NULL, errs, &reached));
	CHECK(!pthread_join(thread, &result));
	CHECK(reached == 2 && result == &reached);
	puts("ok");
	return 0;
}
