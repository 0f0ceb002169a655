/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The flavour bp, under the short names. */
#ifndef URCU_API_MAP
#define URCU_API_MAP
#endif
#include <urcu/urcu-bp.h>
