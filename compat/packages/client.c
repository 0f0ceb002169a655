/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program of liburcu: readers, grace periods, a callback. Prints the libraries with urcu or
 * quiescence in their names that it runs on, each once.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-memb.h>

enum {
	UPDATES = 100,
};

static int *current;
static int is_over;
static int called;

static void *read_on(void *unused)
{
	(void)unused;
	urcu_memb_register_thread();
	while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) {
		int *found;

		urcu_memb_read_lock();
		found = rcu_dereference(current);
		if (found && *found != 42)
			abort();
		urcu_memb_read_unlock();
	}
	urcu_memb_unregister_thread();
	return NULL;
}

static void count(struct rcu_head *head)
{
	(void)head;
	called++;
}

static void print_libraries(void)
{
	char line[4096], last[4096] = "";
	FILE *maps = fopen("/proc/self/maps", "r");

	if (!maps)
		abort();
	while (fgets(line, sizeof(line), maps)) {
		char *path = strchr(line, '/');

		if (!path || !(strstr(path, "/liburcu") || strstr(path, "/libquiescence")))
			continue;
		if (strcmp(path, last))
			fputs(path, stdout);
		strcpy(last, path);
	}
	fclose(maps);
}

int main(void)
{
	static struct rcu_head head;
	pthread_t reader;

	if (pthread_create(&reader, NULL, read_on, NULL))
		abort();
	for (int i = 0; i < UPDATES; i++) {
		int *new = malloc(sizeof(*new)), *old;

		if (!new)
			abort();
		*new = 42;
		old = rcu_xchg_pointer(&current, new);
		urcu_memb_synchronize_rcu();
		if (old)
			*old = 0;
		free(old);
	}
	urcu_memb_call_rcu(&head, count);
	urcu_memb_barrier();
	__atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
	if (pthread_join(reader, NULL) || called != 1)
		abort();
	print_libraries();
	return 0;
}
