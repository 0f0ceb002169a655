/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Loads and stores of variables that threads share, of a size that the CPU reads and writes at
 * once. They order nothing: for that there are the barriers of <urcu/arch.h>.
 */
#ifndef _URCU_SYSTEM_H
#define _URCU_SYSTEM_H

#include <urcu/arch.h>
#include <urcu/compiler.h>

/*
 * Reads p once, in one piece, and returns it. The one with an underscore lacks the barrier for CPUs
 * whose caches are not coherent.
 */
#define _CMM_LOAD_SHARED(p)	CMM_ACCESS_ONCE(p)
#define CMM_LOAD_SHARED(p)							\
	__extension__ ({							\
		cmm_smp_rmc();							\
		_CMM_LOAD_SHARED(p);						\
	})

/*
 * Writes v to x once, in one piece, and returns v without reading x. The one with an underscore
 * lacks the barrier for CPUs whose caches are not coherent.
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
