/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * For ThreadSanitizer, which does not see into the libraries: what a section did comes before the
 * end of the grace period that waited for it. Included before a program by `cc -include tsan.h`.
 */
#include <urcu/urcu-memb.h>

extern void __tsan_acquire(void *);
extern void __tsan_release(void *);

static char order_of_sections;

static inline void unlock_and_release(void)
{
	__tsan_release(&order_of_sections);
	urcu_memb_read_unlock();
}

static inline void synchronize_and_acquire(void)
{
	urcu_memb_synchronize_rcu();
	__tsan_acquire(&order_of_sections);
}

#define urcu_memb_read_unlock unlock_and_release
#define urcu_memb_synchronize_rcu synchronize_and_acquire
