/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What readers do, each alone in a function, for the test to look at what the compiler makes of it. */
#define _LGPL_SOURCE
#include <urcu/urcu-bp.h>
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/urcu-signal.h>

#define READERS(flavor)									\
	void flavor##_lock(void);							\
	void flavor##_lock(void)							\
	{										\
		urcu_##flavor##_read_lock();						\
	}										\
											\
	void flavor##_unlock(void);							\
	void flavor##_unlock(void)							\
	{										\
		urcu_##flavor##_read_unlock();						\
	}										\
											\
	long flavor##_pair(long **place);						\
	long flavor##_pair(long **place)						\
	{										\
		long value;								\
											\
		urcu_##flavor##_read_lock();						\
		value = *rcu_dereference(*place);					\
		urcu_##flavor##_read_unlock();						\
		return value;								\
	}

READERS(memb)
READERS(mb)
READERS(bp)
READERS(qsbr)
READERS(signal)

void qsbr_quiescent(void);
void qsbr_quiescent(void)
{
	urcu_qsbr_quiescent_state();
}
