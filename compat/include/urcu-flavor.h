/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The old name of <urcu/flavor.h>. */
#include <urcu/flavor.h>
