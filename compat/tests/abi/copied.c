/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * An executable that has the flavour's data copied into itself: its inlined readers look at the copy, and so must the
 * library. Shown by what only the library does: it counts grace periods where the executable looks, fills in whether
 * there is membarrier, waits for a reader that copied the number from here, and is woken through the word here.
 */
#define _LGPL_SOURCE
#include <urcu/urcu-memb.h>
#include <urcu/static/urcu-memb.h>
#include <urcu/flavor.h>

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <stdint.h>

#include "../../examples/check.h"

extern char __executable_start, end;

extern const struct rcu_flavor_struct urcu_memb_flavor;

/* The library's, not what a macro of the headers makes of it. */
extern void exported_read_lock(void) __asm__("urcu_memb_read_lock");
extern void urcu_memb_barrier(void);

static int is_in_executable(const void *address)
{
	return (uintptr_t)address >= (uintptr_t)&__executable_start && (uintptr_t)address < (uintptr_t)&end;
}

static sem_t has_begun, may_end;
static int section_has_ended;

static void *reader(void *unused)
{
	(void)unused;
	urcu_memb_register_thread();
	_urcu_memb_read_lock();
	/* The number that was copied is the executable's. */
	CHECK((uint32_t)__atomic_load_n(&urcu_memb_reader.ctr, __ATOMIC_RELAXED) == 1);
	sem_post(&has_begun);
	sem_wait(&may_end);
	/* A library that waits for no reader, or looks elsewhere, is through before this. */
	while (__atomic_load_n(&urcu_memb_gp.futex, __ATOMIC_RELAXED) != -1)
		sched_yield();
	__atomic_store_n(&section_has_ended, 1, __ATOMIC_RELAXED);
	_urcu_memb_read_unlock();
	/* The reader has reset it. Stock liburcu sets it once more before it finds no reader. */
	while (__atomic_load_n(&urcu_memb_gp.futex, __ATOMIC_RELAXED) == -1)
		sched_yield();
	urcu_memb_unregister_thread();
	return NULL;
}

int main(void)
{
	pthread_t thread;
	unsigned long number;

	CHECK(is_in_executable(&urcu_memb_gp));
	CHECK(is_in_executable(&urcu_memb_has_sys_membarrier));
	CHECK(is_in_executable(&urcu_memb_flavor));
	/* Every kernel that these tests run on has it. */
	CHECK(urcu_memb_has_sys_membarrier == 1);
	CHECK(urcu_memb_flavor.read_lock == exported_read_lock);
	CHECK(urcu_memb_flavor.barrier == urcu_memb_barrier);

	number = urcu_memb_gp.ctr;
	CHECK((uint32_t)number == 1);
	sem_init(&has_begun, 0, 0);
	sem_init(&may_end, 0, 0);
	CHECK(pthread_create(&thread, NULL, reader, NULL) == 0);
	sem_wait(&has_begun);
	sem_post(&may_end);
	urcu_memb_flavor.update_synchronize_rcu();
	CHECK(__atomic_load_n(&section_has_ended, __ATOMIC_RELAXED));
	CHECK((uint32_t)urcu_memb_gp.ctr == 1 && urcu_memb_gp.ctr != number);
	CHECK(pthread_join(thread, NULL) == 0);
	puts("ok");
	return 0;
}
