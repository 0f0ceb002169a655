/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a program must not do: our libraries end it with a message that names the mistake. Each
 * mistake is made in a process of its own, this program again with that case; its parent looks at
 * how it ended and at what it said. Only on our libraries: Debian's go on, wait for ever, or say
 * something else. (Mistakes that liburcu survives are in regressions/tolerated.c.)
 */
#include "flavor.h"

#ifdef _LGPL_SOURCE
#define EXPORTED_READERS 0
#else
#define EXPORTED_READERS 1
#endif

/* What a process says, all of it. */
static void read_all(int from, char *into, size_t size)
{
	size_t length = 0;

	for (;;) {
		ssize_t got = read(from, into + length, size - 1 - length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0 || length + (size_t)got >= size - 1)
			break;
		length += (size_t)got;
	}
	into[length] = '\0';
}

/* Runs this case in a process of its own, under QUIESCENCE_DEBUG=1 or =0. Returns how it ended. */
static int again(const char *name, const char *debug, char *said, size_t size)
{
	int ends[2], status = 0;

	CHECK_EQUAL(pipe(ends), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDOUT_FILENO);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv("PROGRAMS_AGAIN", "1", 1);
		setenv("QUIESCENCE_DEBUG", debug, 1);
		/* A mistake that is waited for, instead of named, ends like this. */
		alarm(60);
		execl("/proc/self/exe", "misuse", name, (char *)NULL);
		_exit(3);
	}
	close(ends[1]);
	read_all(ends[0], said, size);
	close(ends[0]);
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static void is_named(const char *name, const char *debug, const char *part)
{
	char said[4096];
	int status = again(name, debug, said, sizeof(said));

	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, part) ||
	    !strstr(said, "liburcu (quiescence): ")) {
		fprintf(stderr, "%s: ended with status %#x and said: %s(should say: %s)\n", name,
			(unsigned int)status, said, part);
		check_failed(__FILE__, __LINE__, name);
	}
}

/*
 * MISTAKE(name, said, possible) { ... }: makes it; a part of what is said about it; whether it can
 * be made in this flavour, compiled like this. A DEBUG_MISTAKE is looked for under
 * QUIESCENCE_DEBUG=1 only.
 */
#define MISTAKE(name, said, possible) MISTAKE_UNDER("0", name, said, possible)
#define DEBUG_MISTAKE(name, said, possible) MISTAKE_UNDER("1", name, said, possible)
#define MISTAKE_UNDER(debug, name, said, possible)					\
	static void name##_is_made(void);						\
	CASE(name)									\
	{										\
		if (getenv("PROGRAMS_AGAIN"))						\
			name##_is_made();						\
		else if (possible)							\
			is_named(#name, debug, said);					\
	}										\
	static void name##_is_made(void)

#define TEXT(tokens) #tokens
#define TEXT_OF(tokens) TEXT(tokens)
#define FLAVOR_NAME TEXT_OF(FLAVOR_PREFIX)

/* By the flavour's structure: inlined readers cannot know, they are a load and a store. */
DEBUG_MISTAKE(lock_unregistered,
	FLAVOR_NAME ": rcu_read_lock() by a thread that is not registered", !IS_BP)
{
	rcu_flavor.read_lock();
	rcu_flavor.read_unlock();
}

DEBUG_MISTAKE(quiescent_unregistered, "rcu_quiescent_state() by a thread that is not registered",
	EXPORTED_READERS && IS_QSBR)
{
	rcu_quiescent_state();
}

DEBUG_MISTAKE(online_unregistered, "rcu_thread_online() by a thread that is not registered",
	EXPORTED_READERS && IS_QSBR)
{
	rcu_thread_online();
}

MISTAKE(registered_twice, FLAVOR_NAME "_register_thread() twice", !IS_BP)
{
	rcu_register_thread();
	rcu_register_thread();
}

MISTAKE(unregistered_never_registered,
	FLAVOR_NAME "_unregister_thread() by a thread that is not registered", !IS_BP)
{
	rcu_unregister_thread();
}

MISTAKE(synchronize_in_a_section,
	FLAVOR_NAME "_synchronize_rcu() inside a read-side critical section", !IS_QSBR)
{
	rcu_register_thread();
	rcu_read_lock();
	synchronize_rcu();
}

/* The case's own. */
DEBUG_MISTAKE(ends_in_a_section, "a thread ends inside a read-side critical section", !IS_QSBR)
{
	rcu_register_thread();
	rcu_read_lock();
}

static void nothing(struct rcu_head *head)
{
	(void)head;
}

static int runs, may_end;

static void stays(struct rcu_head *head)
{
	(void)head;
	flag_set(&runs);
	flag_await(&may_end);
}

/* While the worker is in a callback, so that it does not take the head in between. */
MISTAKE(head_queued_twice, "is queued while it waits already", 1)
{
	static struct rcu_head long_one, head;

	call_rcu(&long_one, stays);
	flag_await(&runs);
	call_rcu(&head, nothing);
	call_rcu(&head, nothing);
	flag_set(&may_end);
	rcu_barrier();
}

static void barrier_in_callback(struct rcu_head *head)
{
	(void)head;
	rcu_barrier();
}

MISTAKE(barrier_in_a_callback, FLAVOR_NAME "_barrier() by a callback", 1)
{
	static struct rcu_head head;

	rcu_register_thread();
	call_rcu(&head, barrier_in_callback);
	rcu_unregister_thread();
	rcu_barrier();
}

static void nothing_deferred(void *argument)
{
	(void)argument;
}

static void barrier_in_deferred(void *argument)
{
	(void)argument;
	defer_rcu(nothing_deferred, NULL);
	rcu_defer_barrier();
}

MISTAKE(defer_barrier_in_a_deferred_function,
	FLAVOR_NAME "_defer_barrier() by a deferred function", 1)
{
	rcu_register_thread();
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	defer_rcu(barrier_in_deferred, NULL);
	rcu_defer_barrier();
}

MISTAKE(defer_registered_twice, FLAVOR_NAME "_defer_register_thread() twice", 1)
{
	rcu_defer_register_thread();
	rcu_defer_register_thread();
}

MISTAKE(defer_unregistered_never_registered,
	FLAVOR_NAME "_defer_unregister_thread() by a thread", 1)
{
	rcu_defer_unregister_thread();
}

MISTAKE(defer_of_no_function, "without a function", 1)
{
	rcu_register_thread();
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	defer_rcu(NULL, NULL);
}

#if IS_BP
MISTAKE(after_fork_without_before, "without urcu_bp_before_fork()", 1)
{
	urcu_bp_after_fork_parent();
}
#endif

/* Under QUIESCENCE_DEBUG=1 a program without mistakes is left alone. */
CASE(without_mistakes)
{
	struct rcu_head head;
	char said[4096];

	if (!getenv("PROGRAMS_AGAIN")) {
		CHECK_EQUAL(again("without_mistakes", "1", said, sizeof(said)), 0);
		return;
	}
	rcu_register_thread();
	for (int i = 0; i < 3; i++) {
		rcu_read_lock();
		rcu_read_lock();
		rcu_read_unlock();
		rcu_read_unlock();
		rcu_quiescent_state();
		call_rcu(&head, nothing);
		rcu_barrier();
	}
	rcu_unregister_thread();
}
