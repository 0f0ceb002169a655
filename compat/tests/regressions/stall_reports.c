/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A reader that runs in a section while main waits for a grace period.
 *
 * stall_reports reader-blocks		a signalfd takes all real-time signals; until a report
 * stall_reports reader-does-not-block	the same, but the reader lets them in
 * stall_reports handler		after a report with a stack it handles the signal itself
 *
 * Reports are read from standard error here, and written to standard output.
 */
#define URCU_API_MAP
#include <urcu/urcu-memb.h>

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
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

static void *reader(void *unused)
{
	stack_t alternate = { .ss_size = 1 << 16 };

	(void)unused;
	alternate.ss_sp = mmap(NULL, alternate.ss_size, PROT_READ | PROT_WRITE,
			       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(alternate.ss_sp != MAP_FAILED && !sigaltstack(&alternate, NULL));
	if (is("reader-does-not-block")) {
		sigset_t none;

		sigemptyset(&none);
		CHECK(!pthread_sigmask(SIG_SETMASK, &none, NULL));
	}
	rcu_register_thread();
	section();
	rcu_unregister_thread();
	return NULL;
}

static void *updater(void *unused)
{
	(void)unused;
	rcu_register_thread();
	synchronize_rcu();
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

/* Has a reader hold up a grace period. */
static void start(void)
{
	inside = done = 0;
	CHECK(!pthread_create(&reading, NULL, reader, NULL));
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
	int ends[2], reports, signals = -1;
	sigset_t set = real_time();

	CHECK(argc == 2);
	what = argv[1];
	CHECK(!pipe(ends));
	CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
	reports = ends[0];
	if (is("reader-blocks") || is("reader-does-not-block")) {
		CHECK(!pthread_sigmask(SIG_BLOCK, &set, NULL));
		signals = signalfd(-1, &set, SFD_NONBLOCK);
		CHECK(signals >= 0);
	}
	start();
	if (is("handler")) {
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
