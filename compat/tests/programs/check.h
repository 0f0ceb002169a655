/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What every program of the matrix starts from: named cases, checks that end the process with their place, and ways
 * for threads to meet. Nothing here waits for time to pass: a thread waits for a flag, or until the kernel says that
 * another thread sleeps. It uses nothing of liburcu, so that a fault of the library cannot hide in it.
 *
 * `program` runs all cases, `program CASE...` those named, `program --list` names them, `program --not CASE... `
 * all but those. "run CASE" is printed before a case and "ok CASE" after it: a hang has a name.
 */
#ifndef PROGRAMS_CHECK_H
#define PROGRAMS_CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#define UNUSED __attribute__((unused))

static void check_failed(const char *file, int line, const char *what) __attribute__((noreturn));
static void check_failed(const char *file, int line, const char *what)
{
	fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
	fflush(stderr);
	abort();
}

static UNUSED void check_equal(const char *file, int line, const char *what, long is, long should)
{
	if (is == should)
		return;
	fprintf(stderr, "%s:%d: %s is %ld, should be %ld\n", file, line, what, is, should);
	check_failed(file, line, what);
}

#define CHECK(condition)						\
	do {								\
		if (!(condition))					\
			check_failed(__FILE__, __LINE__, #condition);	\
	} while (0)
/* For numbers: says both. */
#define CHECK_EQUAL(is, should)	check_equal(__FILE__, __LINE__, #is, (long)(is), (long)(should))

/* What a call answers, and the state that it gives: `state` was another one before. */
#define CHECK_WITH_STATE(call, answer, expected)	\
	do {						\
		state = -1;				\
		CHECK((call) == (answer));		\
		CHECK_EQUAL(state, expected);		\
	} while (0)

/* Flags and counts between threads: sequentially consistent, since what is tested is not theirs to order. */
static inline void flag_set(int *flag)
{
	__atomic_store_n(flag, 1, __ATOMIC_SEQ_CST);
}

static inline int flag_is_set(int *flag)
{
	return __atomic_load_n(flag, __ATOMIC_SEQ_CST);
}

static inline long count_add(long *count, long by)
{
	return __atomic_add_fetch(count, by, __ATOMIC_SEQ_CST);
}

static inline long count_of(long *count)
{
	return __atomic_load_n(count, __ATOMIC_SEQ_CST);
}

#define WAIT_UNTIL(condition)			\
	do {					\
		while (!(condition))		\
			sched_yield();		\
	} while (0)

static UNUSED void flag_await(int *flag)
{
	WAIT_UNTIL(flag_is_set(flag));
}

/* Lets others do what they must not do yet: a chance for a fault to show, never what a pass depends on. */
static UNUSED void let_others_run(void)
{
	for (int i = 0; i < 300; i++)
		sched_yield();
}

static UNUSED pid_t thread_id(void)
{
	return (pid_t)syscall(SYS_gettid);
}

static UNUSED char thread_state(pid_t tid)
{
	char path[64], line[512];
	ssize_t length;
	int file;

	snprintf(path, sizeof(path), "/proc/self/task/%d/stat", (int)tid);
	file = open(path, O_RDONLY | O_CLOEXEC);
	if (file < 0)
		return 'X';
	length = read(file, line, sizeof(line) - 1);
	close(file);
	if (length <= 0)
		return 'X';
	line[length] = '\0';
	/* The name is in parentheses and may hold any character: the state follows the last one. */
	const char *after = strrchr(line, ')');
	return after ? after[2] : 'X';
}

/*
 * Until the thread whose id is at `tid` sleeps in the kernel, or has set `done`. It has to be seen asleep many times
 * in a row: a lock that it meets on its way is not what is waited for.
 */
static UNUSED void await_asleep(pid_t *tid, int *done)
{
	int asleep = 0;

	WAIT_UNTIL(__atomic_load_n(tid, __ATOMIC_SEQ_CST) != 0);
	while (asleep < 10 && !flag_is_set(done)) {
		char state = thread_state(__atomic_load_n(tid, __ATOMIC_SEQ_CST));

		asleep = state == 'S' || state == 'D' ? asleep + 1 : 0;
		sched_yield();
	}
}

static UNUSED pthread_t thread_start(void *(*run)(void *), void *argument)
{
	pthread_t thread;

	CHECK_EQUAL(pthread_create(&thread, NULL, run, argument), 0);
	return thread;
}

static UNUSED void thread_end(pthread_t thread)
{
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
}

static UNUSED void pin_to_cpu(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	CHECK_EQUAL(sched_setaffinity(0, sizeof(set), &set), 0);
}

/*
 * Where all went well in a child. Under memcheck it turns into another program, which is not looked at: what threads
 * that it has not got were holding is lost, and no fault.
 */
static void child_leaves(void) __attribute__((noreturn, unused));
static void child_leaves(void)
{
	fflush(stdout);
	if (getenv("PROGRAMS_MEMCHECK"))
		execl("/bin/true", "true", (char *)NULL);
	_exit(0);
}

/* The child's end, looked at by its parent: everything went well there. */
static UNUSED void child_ended_well(pid_t child)
{
	int status = 0;

	while (waitpid(child, &status, 0) < 0)
		CHECK_EQUAL(errno, EINTR);
	CHECK(WIFEXITED(status));
	CHECK_EQUAL(WEXITSTATUS(status), 0);
}

struct test_case {
	const char *name;
	void (*run)(void);
	int line;
	struct test_case *next;
};

/* In the order in which they stand in the program. */
static struct test_case *cases;

static void case_add(struct test_case *added)
{
	struct test_case **at = &cases;

	while (*at && (*at)->line < added->line)
		at = &(*at)->next;
	added->next = *at;
	*at = added;
}

/* CASE(name) { ... } is one of the program's, which `main` finds by itself. */
#define CASE(name)									\
	static void name(void);								\
	__attribute__((constructor)) static void name##_is_a_case(void)			\
	{										\
		static struct test_case this_one = { #name, name, __LINE__, NULL };	\
											\
		case_add(&this_one);							\
	}										\
	static void name(void)

static void *case_run(void *argument)
{
	((const struct test_case *)argument)->run();
	return NULL;
}

static UNUSED int is_among(const char *name, int count, char **names)
{
	for (int i = 0; i < count; i++)
		if (strcmp(name, names[i]) == 0)
			return 1;
	return 0;
}

/*
 * Whether this runs on liburcu's own library of that version, "0.13" or "0.15"; never on ours. For
 * what the versions do otherwise.
 */
static UNUSED int is_liburcu(const char *version)
{
	const char *is = getenv("PROGRAMS_LIBURCU");

	return is && strcmp(is, version) == 0;
}

/* PROGRAMS_LIBRARY=ours or debian says whose libraries these should be: a wrong path must not pass for a right one. */
static UNUSED void check_libraries(void)
{
	const char *expected = getenv("PROGRAMS_LIBRARY");
	char line[1024];
	int any = 0, ours = 0;

	if (!expected)
		return;
	FILE *maps = fopen("/proc/self/maps", "re");
	CHECK(maps != NULL);
	while (fgets(line, sizeof(line), maps)) {
		any |= strstr(line, "liburcu") != NULL;
		ours |= strstr(line, "libquiescence.so") != NULL;
	}
	fclose(maps);
	/* A program whose functions are all inlined has no library at all. */
	if (any)
		CHECK_EQUAL(ours, strcmp(expected, "ours") == 0);
}

int main(int argc, char **argv)
{
	int all_but = argc > 1 && strcmp(argv[1], "--not") == 0;
	int first = all_but ? 2 : 1;
	size_t ran = 0;

	if (argc > 1 && strcmp(argv[1], "--list") == 0) {
		for (const struct test_case *one = cases; one; one = one->next)
			printf("%s\n", one->name);
		return 0;
	}
	check_libraries();
	for (struct test_case *one = cases; one; one = one->next) {
		int named = is_among(one->name, argc - first, argv + first);

		if (argc > 1 && named == all_but)
			continue;
		printf("run %s\n", one->name);
		fflush(stdout);
		/* In a thread of its own: what a case leaves behind in its thread is no other's matter. */
		thread_end(thread_start(case_run, one));
		printf("ok %s\n", one->name);
		fflush(stdout);
		ran++;
	}
	if (ran == 0) {
		fprintf(stderr, "%s: no case of that name\n", argv[0]);
		return 2;
	}
	return 0;
}

#endif
