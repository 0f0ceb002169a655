/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Atomic operations without a result where no statement may stand: in 0.13 they are expressions. */
#include "flavor.h"

int main(void)
{
	int word, steps = 0;

	for (uatomic_set(&word, 1); uatomic_read(&word) < 4; uatomic_inc(&word), steps++)
		;
	CHECK(steps == 3);
	steps ? uatomic_add(&word, 6) : uatomic_sub(&word, 6);
	steps ? uatomic_and(&word, 8) : uatomic_or(&word, 1);
	CHECK(word == 8);
	steps ? uatomic_or(&word, 1) : uatomic_and(&word, 1);
	uatomic_dec(&word), uatomic_sub(&word, 1);
	CHECK(word == 7);
	puts("ok");
	return 0;
}
