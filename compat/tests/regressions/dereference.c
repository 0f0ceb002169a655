/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What is published is seen whole by readers that find it through the functions. */
#include "flavor.h"

#include <pthread.h>
#include <urcu/pointer.h>

enum { ROUNDS = 200000, WORDS = 8 };

static unsigned long words[ROUNDS][WORDS];
static void *published = words;

static void *publishes(void *nothing)
{
	for (unsigned long round = 1; round < ROUNDS; round++) {
		for (int word = 0; word < WORDS; word++)
			words[round][word] = round;
		rcu_set_pointer_sym(&published, words[round]);
	}
	return nothing;
}

int main(void)
{
	unsigned long *last = words[ROUNDS - 1], *found;
	pthread_t writer;

	CHECK(rcu_dereference_sym2(&published) == words);
	CHECK(!pthread_create(&writer, NULL, publishes, NULL));
	do {
		found = rcu_dereference_sym2(&published);
		for (int word = 0; word < WORDS; word++)
			CHECK(found[word] == (unsigned long) (found - words[0]) / WORDS);
		found = rcu_dereference_sym(__atomic_load_n(&published, __ATOMIC_RELAXED));
		for (int word = 0; word < WORDS; word++)
			CHECK(found[word] == (unsigned long) (found - words[0]) / WORDS);
	} while (found != last);
	CHECK(!pthread_join(writer, NULL));
	puts("ok");
	return 0;
}
