/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What a program must not do: our libraries end it with a message that names the mistake. Each mistake is made in a
 * process of its own, this program again with `--mistake NAME`, under QUIESCENCE_DEBUG=1; its parent looks at how it
 * ended and at what it said. Only on our libraries: Debian's go on, wait for ever, or say something else.
 */
#include "flavor.h"

static void unlock_too_often(void)
{
	rcu_register_thread();
	rcu_read_lock();
	rcu_read_unlock();
	rcu_read_unlock();
}

static void lock_unregistered(void)
{
	rcu_read_lock();
	rcu_read_unlock();
}

static void quiescent_unregistered(void)
{
	rcu_quiescent_state();
}

static void online_unregistered(void)
{
	rcu_thread_online();
}

static void registered_twice(void)
{
	rcu_register_thread();
	rcu_register_thread();
}

static void unregistered_never_registered(void)
{
	rcu_unregister_thread();
}

static void unregistered_in_a_section(void)
{
	rcu_register_thread();
	rcu_read_lock();
	rcu_unregister_thread();
}

static void synchronize_in_a_section(void)
{
	rcu_register_thread();
	rcu_read_lock();
	synchronize_rcu();
}

static void *ends_in_a_section_run(void *argument)
{
	(void)argument;
	rcu_register_thread();
	rcu_read_lock();
	return NULL;
}

static void ends_in_a_section(void)
{
	thread_end(thread_start(ends_in_a_section_run, NULL));
	synchronize_rcu();
}

static void nothing(struct rcu_head *head)
{
	(void)head;
}

static void head_queued_twice(void)
{
	static struct rcu_head head;

	rcu_register_thread();
	rcu_read_lock();
	call_rcu(&head, nothing);
	call_rcu(&head, nothing);
	rcu_read_unlock();
	rcu_quiescent_state();
	rcu_barrier();
}

static void barrier_in_callback(struct rcu_head *head)
{
	(void)head;
	rcu_barrier();
}

static void barrier_in_a_callback(void)
{
	static struct rcu_head head;

	rcu_register_thread();
	call_rcu(&head, barrier_in_callback);
	rcu_unregister_thread();
	rcu_barrier();
}

static void barrier_in_a_section(void)
{
	rcu_register_thread();
	rcu_read_lock();
	rcu_barrier();
}

static void barrier_in_deferred(void *argument)
{
	(void)argument;
	rcu_defer_barrier();
}

static void defer_barrier_in_a_deferred_function(void)
{
	rcu_register_thread();
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	defer_rcu(barrier_in_deferred, NULL);
	rcu_defer_barrier();
}

static void defer_registered_twice(void)
{
	rcu_defer_register_thread();
	rcu_defer_register_thread();
}

static void defer_unregistered_never_registered(void)
{
	rcu_defer_unregister_thread();
}

static void defer_of_no_function(void)
{
	rcu_register_thread();
	CHECK_EQUAL(rcu_defer_register_thread(), 0);
	defer_rcu(NULL, NULL);
}

#if IS_BP
static void after_fork_without_before(void)
{
	urcu_bp_after_fork_parent();
}
#endif

struct mistake {
	const char *name;
	void (*make)(void);
	const char *said;	/* a part of what is said about it */
	int possible;		/* in this flavour, compiled like this */
};

#ifdef _LGPL_SOURCE
#define EXPORTED_READERS 0
#else
#define EXPORTED_READERS 1
#endif

static const struct mistake mistakes[] = {
	/* Inlined readers cannot know: they are a load, an addition and a store. */
	{ "unlock_too_often", unlock_too_often, "read_unlock() outside", EXPORTED_READERS && !IS_QSBR },
	{ "lock_unregistered", lock_unregistered, "not registered", EXPORTED_READERS && !IS_QSBR && !IS_BP },
	{ "quiescent_unregistered", quiescent_unregistered, "rcu_quiescent_state() by a thread that is not registered",
	  EXPORTED_READERS && IS_QSBR },
	{ "online_unregistered", online_unregistered, "rcu_thread_online() by a thread that is not registered",
	  EXPORTED_READERS && IS_QSBR },
	{ "registered_twice", registered_twice, "register_thread() twice", !IS_BP },
	{ "unregistered_never_registered", unregistered_never_registered, "not registered", !IS_BP },
	{ "unregistered_in_a_section", unregistered_in_a_section,
	  "unregister_thread() inside a read-side critical section", !IS_QSBR && !IS_BP },
	{ "synchronize_in_a_section", synchronize_in_a_section, "inside a read-side critical section", !IS_QSBR },
	{ "ends_in_a_section", ends_in_a_section,
	  "a thread ends inside a read-side critical section", !IS_QSBR },
	{ "head_queued_twice", head_queued_twice, "queued while it waits", 1 },
	{ "barrier_in_a_callback", barrier_in_a_callback, "callback", 1 },
	{ "barrier_in_a_section", barrier_in_a_section,
	  "barrier() inside a read-side critical section", !IS_QSBR },
	{ "defer_barrier_in_a_deferred_function", defer_barrier_in_a_deferred_function, "deferred function", 1 },
	{ "defer_registered_twice", defer_registered_twice, "defer_register_thread() twice", 1 },
	{ "defer_unregistered_never_registered", defer_unregistered_never_registered, "not registered", 1 },
	{ "defer_of_no_function", defer_of_no_function, "without a function", 1 },
#if IS_BP
	{ "after_fork_without_before", after_fork_without_before, "before_fork", 1 },
#endif
};

/* What the mistaken process says on stderr, all of it. */
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

static void make_and_look(const struct mistake *mistake)
{
	char said[4096];
	int ends[2], status = 0;

	CHECK_EQUAL(pipe(ends), 0);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		close(ends[1]);
		setenv("QUIESCENCE_DEBUG", "1", 1);
		/* A mistake that is waited for, instead of named, ends like this. */
		alarm(60);
		execl("/proc/self/exe", "misuse", "--mistake", mistake->name, (char *)NULL);
		_exit(3);
	}
	close(ends[1]);
	read_all(ends[0], said, sizeof(said));
	close(ends[0]);
	CHECK(waitpid(child, &status, 0) == child);
	if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT || !strstr(said, mistake->said) ||
	    !strstr(said, "liburcu (quiescence): ")) {
		fprintf(stderr, "%s: ended with status %#x and said: %s(should say: %s)\n", mistake->name,
			(unsigned int)status, said, mistake->said);
		check_failed(__FILE__, __LINE__, mistake->name);
	}
}

static void make_every_mistake(void)
{
	for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
		if (mistakes[i].possible) {
			printf("  %s\n", mistakes[i].name);
			fflush(stdout);
			make_and_look(&mistakes[i]);
		}
}

/* With the same switch on, a program without mistakes is left alone. */
static void no_mistake(void)
{
	struct rcu_head head;

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

static void without_mistakes(void)
{
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		setenv("QUIESCENCE_DEBUG", "1", 1);
		alarm(60);
		execl("/proc/self/exe", "misuse", "--mistake", "none", (char *)NULL);
		_exit(3);
	}
	child_ended_well(child);
}

static const struct test_case cases[] = { CASE(make_every_mistake), CASE(without_mistakes) };

int main(int argc, char **argv)
{
	if (argc == 3 && strcmp(argv[1], "--mistake") == 0) {
		if (strcmp(argv[2], "none") == 0) {
			no_mistake();
			return 0;
		}
		for (size_t i = 0; i < sizeof(mistakes) / sizeof(mistakes[0]); i++)
			if (strcmp(mistakes[i].name, argv[2]) == 0)
				mistakes[i].make();
		return 0;
	}
	return check_main(cases, sizeof(cases) / sizeof(cases[0]), argc, argv);
}
