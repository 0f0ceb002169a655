/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The old name of <urcu/pointer.h>. */
#include <urcu/pointer.h>
