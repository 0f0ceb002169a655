/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sections by the library's functions: what a program has that does not define _LGPL_SOURCE.
 */
#if defined(FLAVOR_MEMB)
#include <urcu/urcu-memb.h>
#elif defined(FLAVOR_MB)
#include <urcu/urcu-mb.h>
#elif defined(FLAVOR_QSBR)
#include <urcu/urcu-qsbr.h>
#elif defined(FLAVOR_BP)
#include <urcu/urcu-bp.h>
#endif

void pairs_exported(long amount);

void pairs_exported(long amount)
{
	for (long each = 0; each < amount; each++) {
#if defined(FLAVOR_MEMB)
		urcu_memb_read_lock();
		urcu_memb_read_unlock();
#elif defined(FLAVOR_MB)
		urcu_mb_read_lock();
		urcu_mb_read_unlock();
#elif defined(FLAVOR_QSBR)
		urcu_qsbr_read_lock();
		urcu_qsbr_read_unlock();
#elif defined(FLAVOR_BP)
		urcu_bp_read_lock();
		urcu_bp_read_unlock();
#endif
	}
}
