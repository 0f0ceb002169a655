/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The old name of <urcu/defer.h>. */
#include <urcu/defer.h>
