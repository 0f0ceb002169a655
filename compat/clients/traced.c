/*
 * SPDX-License-Identifier: MIT OR Apache-2.0
 * A program with user-space trace points, for lttng.sh.
 *
 * traced THREADS EVENTS: so many counted events from each of so many threads.
 * traced forever: an event now and then, until it is asked to end.
 */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "traced.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int events;

static void *emit(void *thread)
{
	for (int number = 0; number < events; number++)
		lttng_ust_tracepoint(quiescence, counted, (int)(intptr_t)thread, number);
	return NULL;
}

static void emit_forever(void)
{
	const struct timespec pause = { .tv_nsec = 100 * 1000 };

	for (int number = 0;; number++) {
		lttng_ust_tracepoint(quiescence, other, number);
		nanosleep(&pause, NULL);
	}
}

int main(int argc, char **argv)
{
	pthread_t threads[16];

	if (argc == 2 && strcmp(argv[1], "forever") == 0)
		emit_forever();
	if (argc != 3 || atoi(argv[1]) < 1 || atoi(argv[1]) > 16)
		return 2;
	events = atoi(argv[2]);
	for (int i = 0; i < atoi(argv[1]); i++)
		if (pthread_create(&threads[i], NULL, emit, (void *)(intptr_t)i))
			return 1;
	for (int i = 0; i < atoi(argv[1]); i++)
		if (pthread_join(threads[i], NULL))
			return 1;
	return 0;
}
