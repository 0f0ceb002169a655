/* The clock of src/bench/clock.rs: the time-stamp counter, or nanoseconds where there is none. */
#ifndef RIVALS_TICKS_H
#define RIVALS_TICKS_H

#include <stdint.h>
#include <time.h>

static inline uint64_t rivals_ticks(void)
{
#if defined(__x86_64__)
	return __builtin_ia32_rdtsc();
#else
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * UINT64_C(1000000000) + now.tv_nsec;
#endif
}

static inline uint32_t rivals_ticks_since(uint64_t begin)
{
	uint64_t ticks = rivals_ticks() - begin;

	return ticks < UINT32_MAX ? ticks : UINT32_MAX;
}

#endif
