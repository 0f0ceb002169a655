/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The flavour that the program chooses, under the short names: rcu_read_lock() and the like. */
#ifndef URCU_API_MAP
#define URCU_API_MAP
#endif
#include <urcu/urcu.h>
