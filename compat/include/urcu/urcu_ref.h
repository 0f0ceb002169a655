/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The old name of <urcu/ref.h>. */
#include <urcu/ref.h>
