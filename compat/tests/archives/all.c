/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* All flavours in one program, out of archives. What several of them define is there once. */
#include "../../examples/check.h"

#include <urcu/urcu-bp.h>
#include <urcu/urcu-mb.h>
#include <urcu/urcu-memb.h>
#include <urcu/urcu-qsbr.h>
#include <urcu/urcu-signal.h>
#include <urcu/map/clear.h>

extern void *rcu_xchg_pointer_sym(void **p, void *v);
extern void *urcu_bp_xchg_pointer_sym(void **p, void *v);

#define USE(flavor)					\
	do {						\
		urcu_##flavor##_register_thread();	\
		urcu_##flavor##_read_lock();		\
		urcu_##flavor##_read_unlock();		\
		urcu_##flavor##_synchronize_rcu();	\
	} while (0)

int main(void)
{
	int one, two;
	void *pointer = &one;

	USE(memb);
	USE(mb);
	USE(qsbr);
	USE(bp);
	USE(signal);
	CHECK(rcu_xchg_pointer_sym(&pointer, &two) == &one);
	CHECK(urcu_bp_xchg_pointer_sym(&pointer, &one) == &two);
	puts("ok");
	return 0;
}
