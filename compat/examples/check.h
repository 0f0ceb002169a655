/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A check that says where it failed, and ends the program. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)								\
	do {										\
		if (!(condition)) {							\
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);	\
			abort();							\
		}									\
	} while (0)

#endif
