/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the files of the measured program share: the flavour, clocks, and figures. */
#ifndef PROGRAM_H
#define PROGRAM_H

#define _GNU_SOURCE
#define _LGPL_SOURCE
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "flavor.h"

static inline void fail(const char *what)
{
	fprintf(stderr, "%s\n", what);
	exit(1);
}

static inline uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline double cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return now.tv_sec * 1e9 + now.tv_nsec;
}

/* Memory of this process, in bytes. */
static inline double resident(void)
{
	long pages = 0;
	FILE *file = fopen("/proc/self/statm", "r");

	if (!file || fscanf(file, "%*d %ld", &pages) != 1)
		fail("/proc/self/statm cannot be read");
	fclose(file);
	return (double)pages * sysconf(_SC_PAGESIZE);
}

/* What a measurement has found. */
struct figures {
	double values[12];
	int count;
};

static inline void figure(struct figures *figures, double value)
{
	figures->values[figures->count++] = value;
}

struct object {
	struct rcu_head head;
	long payload[4];
};

/* flood.c: readers for so many milliseconds, beside many producers, beside a few, and alone. */
void flood(long amount_ms, struct figures *figures);
void flood_few(long amount_ms, struct figures *figures);
void no_flood(long amount_ms, struct figures *figures);

#endif
