/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * memory CALL: makes a call without memory. One that returns an error is made again with memory, and must succeed; the
 * others are to end the process.
 */
#include "flavor.h"

#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>
#include <urcu/call-rcu.h>
#include <urcu/rculfhash.h>

struct block {
	struct block *next;
};

/* All that can be had, by blocks of any size. */
static struct block *take_all(void)
{
	struct block *blocks = NULL;

	for (size_t size = 1 << 20; size >= sizeof(struct block); size /= 2) {
		struct block *block;

		while ((block = malloc(size))) {
			block->next = blocks;
			blocks = block;
		}
	}
	return blocks;
}

static void give_back(struct block *blocks)
{
	while (blocks) {
		struct block *next = blocks->next;

		free(blocks);
		blocks = next;
	}
}

static void nothing(struct rcu_head *head)
{
	(void) head;
}

static int defers;

static void deferred(void *any)
{
	(void) any;
	defers++;
}

/* 0, or the error. */
static int call(const char *name)
{
	static struct rcu_head head;

	if (!strcmp(name, "defer_register"))
		return URCU(defer_register_thread)();
	if (!strcmp(name, "create_all"))
		return URCU(create_all_cpu_call_rcu_data)(0);
	if (!strcmp(name, "set_cpu"))
		return URCU(set_cpu_call_rcu_data)(0, NULL);
	if (!strcmp(name, "table"))
		return cds_lfht_new_flavor(1 << 10, 1, 0, CDS_LFHT_AUTO_RESIZE, &URCU(flavor), NULL) ? 0 : -ENOMEM;
	if (!strcmp(name, "call_rcu"))
		URCU(call_rcu)(&head, nothing);
	else if (!strcmp(name, "create"))
		URCU(create_call_rcu_data)(0, -1);
	else if (!strcmp(name, "defer"))
		URCU(defer_rcu)(deferred, NULL);
	else if (!strcmp(name, "barrier"))
		URCU(barrier)();
	return 1;
}

int main(int argc, char **argv)
{
	struct rlimit limit = {64 << 20, RLIM_INFINITY};
	struct block *blocks;
	int result;

	CHECK(argc == 2);
	URCU(flavor).register_thread();
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	blocks = take_all();
	errno = 0;
	result = call(argv[1]);
	if (result > 0) {
		static const char said[] = "returned without memory\n";

		return write(2, said, sizeof(said) - 1) < 0;
	}
	give_back(blocks);
	limit.rlim_cur = RLIM_INFINITY;
	CHECK(!setrlimit(RLIMIT_AS, &limit));
	CHECK(result == -ENOMEM);
	CHECK(call(argv[1]) == 0);
	if (!strcmp(argv[1], "defer_register")) {
		/* Its queue is there: what is deferred needs no more than has been had. */
		URCU(defer_rcu)(deferred, NULL);
		URCU(defer_unregister_thread)();
		CHECK(defers == 1);
	}
	puts("ok");
	fflush(stdout);
	_exit(0);
}
