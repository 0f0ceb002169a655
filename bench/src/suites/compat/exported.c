/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Sections by the library's functions: what a program has that does not define _LGPL_SOURCE.
 */
#include "flavor.h"

void pairs_exported(long amount);

void pairs_exported(long amount)
{
	for (long each = 0; each < amount; each++) {
		rcu_read_lock();
		rcu_read_unlock();
	}
}
