/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * older_handler LIBRARY: a host whose handlers of fork() are there before the library is, and call
 * its hooks.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { BEFORE, PARENT, CHILD, HOOKS };

static void (*hooks[2][HOOKS])(void);

static void call(int which)
{
	for (int each = 0; each < 2; each++)
		if (hooks[each][which])
			hooks[each][which]();
}

static void before(void)
{
	call(BEFORE);
}

static void parent(void)
{
	call(PARENT);
}

static void child(void)
{
	call(CHILD);
}

/* A thread that has called nothing of the library's before. */
static void *forks(void *status)
{
	pid_t process = fork();

	if (!process)
		_exit(0);
	waitpid(process, status, 0);
	return NULL;
}

int main(int argc, char **argv)
{
	const char *names[2][HOOKS] = {
		{ "urcu_bp_before_fork", "urcu_bp_after_fork_parent", "urcu_bp_after_fork_child" },
		{ "urcu_bp_call_rcu_before_fork", "urcu_bp_call_rcu_after_fork_parent",
			"urcu_bp_call_rcu_after_fork_child" },
	};
	pthread_t thread;
	int status = -1;
	void *library;

	if (argc != 2 || pthread_atfork(before, parent, child))
		return 2;
	library = dlopen(argv[1], RTLD_NOW);
	if (!library) {
		fprintf(stderr, "%s\n", dlerror());
		return 2;
	}
	for (int each = 0; each < 2; each++)
		for (int which = 0; which < HOOKS; which++) {
			void *found = dlsym(library, names[each][which]);

			memcpy(&hooks[each][which], &found, sizeof(found));
			if (!found)
				return 2;
		}
	alarm(20);
	pthread_create(&thread, NULL, forks, &status);
	pthread_join(thread, NULL);
	if (status)
		return 3;
	puts("ok");
	return 0;
}
