/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A reader that runs in a section while main waits for a grace period.
 *
 * stall_reports barrier		rcu_barrier, for 600 ms
 * stall_reports reader-blocks		a signalfd takes all real-time signals; until a report
 * stall_reports reader-does-not-block	the same, but the reader lets them in
 * stall_reports handler		after a report with a stack it handles the signal itself
 * stall_reports no-alternate-stack	a reader near the end of its stack
 *
 * Reports are read from standard error here, and written to standard output.
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

#define CHECK(condition)									\
	do {											\
		if (!(condition)) {								\
			printf("%s:%d: %s\n", __FILE__, __LINE__, #condition);			\
			fflush(stdout);								\
			_exit(1);								\
		}										\
	} while (0)

static int inside, done, handled;
static const char *what;

static int is(const char *name)
{
	return !strcmp(what, name);
}

static void handle(int number)
{
	(void)number;
	__atomic_add_fetch(&handled, 1, __ATOMIC_SEQ_CST);
}

static sigset_t real_time(void)
{
	sigset_t set;

	sigemptyset(&set);
	for (int number = SIGRTMIN + 1; number <= SIGRTMAX; number++)
		sigaddset(&set, number);
	return set;
}

/* The first real-time signal whose disposition is not the default, or 0. */
static int taken(void)
{
	for (int number = SIGRTMIN + 1; number <= SIGRTMAX; number++) {
		struct sigaction now;

		CHECK(!sigaction(number, NULL, &now));
		if (now.sa_handler != SIG_DFL)
			return number;
	}
	return 0;
}

static void section(void)
{
	rcu_read_lock();
	__atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&done, __ATOMIC_SEQ_CST))
		;
	rcu_read_unlock();
}

/* With two KiB of the stack left. */
static __attribute__((noinline)) void section_near(const char *end)
{
	char here, *rest = alloca((size_t)(&here - end) - 2048);

	*(volatile char *)rest = 1;
	section();
	*(volatile char *)rest = 2;
}

static void *reader(void *stack)
{
	if (!is("no-alternate-stack")) {
		stack_t alternate = { .ss_size = 1 << 16 };

		alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		CHECK(alternate.ss_sp != MAP_FAILED && !sigaltstack(&alternate, NULL));
	}
	if (is("reader-does-not-block")) {
		sigset_t none;

		sigemptyset(&none);
		CHECK(!pthread_sigmask(SIG_SETMASK, &none, NULL));
	}
	rcu_register_thread();
	/* Whose addresses are looked up at the first call, which takes more than there will be. */
	rcu_read_lock();
	rcu_read_unlock();
	if (is("no-alternate-stack"))
		section_near(stack);
	else
		section();
	rcu_unregister_thread();
	return NULL;
}

static void called(struct rcu_head *head)
{
	(void)head;
}

static void *updater(void *unused)
{
	static struct rcu_head head;

	(void)unused;
	rcu_register_thread();
	if (is("barrier")) {
		call_rcu(&head, called);
		rcu_barrier();
	} else {
		synchronize_rcu();
	}
	rcu_unregister_thread();
	return NULL;
}

/* Reads reports until one of them has these words. */
static void until_reported(int reports, const char *words, const char *or_words)
{
	static char text[1 << 20];
	size_t length = 0;

	while (!strstr(text, words) && !(or_words && strstr(text, or_words))) {
		ssize_t more = read(reports, text + length, sizeof text - 1 - length);

		CHECK(more > 0);
		(void)!write(STDOUT_FILENO, text + length, (size_t)more);
		length += (size_t)more;
	}
	memset(text, 0, length);
}

static pthread_t reading, updating;

/* Has a reader hold up a grace period. Its stack has a page before it that cannot be touched. */
static void start(void)
{
	const size_t bytes = 1 << 18;
	pthread_attr_t attributes;
	char *stack = mmap(NULL, 4096 + bytes, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(stack != MAP_FAILED && !mprotect(stack, 4096, PROT_NONE));
	stack += 4096;
	CHECK(!pthread_attr_init(&attributes) && !pthread_attr_setstack(&attributes, stack, bytes));
	inside = done = 0;
	CHECK(!pthread_create(&reading, &attributes, reader, stack));
	while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
		usleep(100);
	CHECK(!pthread_create(&updating, NULL, updater, NULL));
}

static void finish(void)
{
	__atomic_store_n(&done, 1, __ATOMIC_SEQ_CST);
	CHECK(!pthread_join(updating, NULL) && !pthread_join(reading, NULL));
}

int main(int argc, char **argv)
{
	int ends[2], reports = -1, signals = -1;
	sigset_t set = real_time();

	CHECK(argc == 2);
	what = argv[1];
	if (!is("barrier")) {
		CHECK(!pipe(ends));
		CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
		reports = ends[0];
	}
	if (is("reader-blocks") || is("reader-does-not-block")) {
		CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
		signals = signalfd(-1, &set, SFD_NONBLOCK);
		CHECK(signals >= 0);
	}
	start();
	if (is("barrier")) {
		struct timespec while_ = { .tv_nsec = 600000000 };

		nanosleep(&while_, NULL);
	} else if (is("handler")) {
		struct sigaction ours = { .sa_handler = handle };
		int number;

		until_reported(reports, "\n      ", NULL); /* a frame */
		number = taken();
		CHECK(number);
		finish(); /* a signal that is on its way has nowhere to go */
		CHECK(!sigaction(number, &ours, NULL));
		start();
		until_reported(reports, "has taken signal", NULL);
		CHECK(!sigaction(number, NULL, &ours) && ours.sa_handler == handle);
	} else if (is("no-alternate-stack")) {
		until_reported(reports, "no sufficient alternate signal stack", "\n      ");
		CHECK(!taken());
	} else {
		until_reported(reports, "no stack:", "\n      ");
		CHECK(!taken());
	}

	finish();
	CHECK(!handled);
	if (signals >= 0) {
		struct signalfd_siginfo seen;

		CHECK(read(signals, &seen, sizeof seen) == -1);
	}
	return 0;
}
