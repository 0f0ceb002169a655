/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The flavour that a program is compiled for, by FLAVOR_X, through its functions: nothing is inlined. */
#pragma once

#if defined(FLAVOR_MEMB)
# include <urcu/urcu-memb.h>
# define URCU(name) urcu_memb_##name
#elif defined(FLAVOR_MB)
# include <urcu/urcu-mb.h>
# define URCU(name) urcu_mb_##name
#elif defined(FLAVOR_QSBR)
# include <urcu/urcu-qsbr.h>
# define URCU(name) urcu_qsbr_##name
#elif defined(FLAVOR_BP)
# include <urcu/urcu-bp.h>
# define URCU(name) urcu_bp_##name
#elif defined(FLAVOR_SIGNAL)
# include <urcu/urcu-signal.h>
# define URCU(name) urcu_signal_##name
#endif

#include <urcu/flavor.h>

#include <stdio.h>
#include <stdlib.h>

extern const struct rcu_flavor_struct URCU(flavor);

#define CHECK(condition)                                                            \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(3);                                                    \
		}                                                                   \
	} while (0)
