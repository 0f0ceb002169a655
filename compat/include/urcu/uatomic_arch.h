/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The old name of <urcu/uatomic.h>. */
#include <urcu/uatomic.h>
