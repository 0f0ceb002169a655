/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* The flavour that a program is compiled for, by -DFLAVOR=memb, through its functions: nothing is inlined. */
#pragma once

#define HEADER_OF(flavor) <urcu/urcu-flavor.h>
#define HEADER(flavor) HEADER_OF(flavor)
#include HEADER(FLAVOR)
#include <urcu/flavor.h>

#define NAME_OF(flavor, name) urcu_##flavor##_##name
#define NAME(flavor, name) NAME_OF(flavor, name)
#define URCU(name) NAME(FLAVOR, name)

#include <stdio.h>
#include <stdlib.h>

extern const struct rcu_flavor_struct URCU(flavor);

#define CHECK(condition)                                                            \
	do {                                                                        \
		if (!(condition)) {                                                 \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			exit(3);                                                    \
		}                                                                   \
	} while (0)
