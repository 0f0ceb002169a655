/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The old name of <urcu/futex.h>. */
#include <urcu/futex.h>
