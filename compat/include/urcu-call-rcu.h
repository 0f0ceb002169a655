/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The old name of <urcu/call-rcu.h>. */
#include <urcu/call-rcu.h>
