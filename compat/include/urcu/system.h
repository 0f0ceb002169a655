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

/*
 * Returns p, read once and whole. With an underscore: without what makes a CPU whose cache is not
 * coherent look again.
 */
#define _CMM_LOAD_SHARED(p)	CMM_ACCESS_ONCE(p)
#define CMM_LOAD_SHARED(p)							\
	__extension__ ({							\
		cmm_smp_rmc();							\
		_CMM_LOAD_SHARED(p);						\
	})

/*
 * Writes v to x, once and whole, and returns v: x is not read again. With an underscore: without
 * what makes a CPU whose cache is not coherent write at once.
 */
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
