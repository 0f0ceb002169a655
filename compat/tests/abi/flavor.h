/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The short names (rcu_read_lock) of the flavour that the command line names, by -DFLAVOR=memb. */
#define URCU_API_MAP
#define HEADER_OF(flavor) <urcu/urcu-flavor.h>
#define HEADER(flavor) HEADER_OF(flavor)
#include HEADER(FLAVOR)
