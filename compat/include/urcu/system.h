/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads and stores of variables that other threads use at the same time: of a size that the
 * CPU reads and writes in one go. They order nothing by themselves; the barriers of
 * <urcu/arch.h> do.
 */
#ifndef _URCU_SYSTEM_H
#define _URCU_SYSTEM_H

#include <urcu/arch.h>
#include <urcu/compiler.h>

/* With an underscore: without what makes a CPU with an incoherent cache look again. */
#define _CMM_LOAD_SHARED(p)	CMM_ACCESS_ONCE(p)
#define CMM_LOAD_SHARED(p)							\
	__extension__ ({							\
		cmm_smp_rmc();							\
		_CMM_LOAD_SHARED(p);						\
	})

/* The value is that of v, not another look at x. */
#define _CMM_STORE_SHARED(x, v)							\
	__extension__ ({							\
		__typeof__(x) __urcu_stored = (v);				\
		CMM_ACCESS_ONCE(x) = __urcu_stored;				\
		__urcu_stored;							\
	})
#define CMM_STORE_SHARED(x, v)							\
	__extension__ ({							\
		__typeof__(x) __urcu_shared = _CMM_STORE_SHARED(x, v);		\
		cmm_smp_wmc();							\
		__urcu_shared;							\
	})

#endif
