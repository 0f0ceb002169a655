/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A program that is linked with none of the libraries, and loads them while it runs, each for itself (RTLD_LOCAL), as
 * plugins of an interpreter do. Its threads are older than the libraries' thread-local storage.
 *
 * dlopened LIBRARY FLAVOR ...	loads all, and uses each flavour (memb, mb, qsbr, bp, signal; - for none) in two threads
 * dlopened --one LIBRARY LIBRARY	loads both, which have the same symbols: there is one of each
 * dlopened --closed LIBRARY FLAVOR	unloads it while a worker of its own runs, and uses it on
 */
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

#include "../../examples/check.h"

/* As in the interface; this program knows no headers of it. */
struct rcu_head {
	void *next;
	void (*func)(struct rcu_head *);
};

struct flavor {
	void (*read_lock)(void);
	void (*read_unlock)(void);
	int (*read_ongoing)(void);
	void (*read_quiescent_state)(void);
	void (*update_call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *));
	void (*update_synchronize_rcu)(void);
	void (*update_defer_rcu)(void (*fct)(void *), void *p);
	void (*thread_offline)(void);
	void (*thread_online)(void);
	void (*register_thread)(void);
	void (*unregister_thread)(void);
	void (*barrier)(void);
};

struct use {
	const struct flavor *flavor;
	int is_qsbr;
};

static sem_t has_begun, may_go_on;
static struct use uses[16];
static int use_count;

static void *open_library(const char *name)
{
	void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);

	if (!library)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(library);
	return library;
}

static void *symbol(void *library, const char *format, const char *flavor)
{
	char name[64];
	void *found;

	snprintf(name, sizeof(name), format, flavor);
	found = dlsym(library, name);
	if (!found)
		fprintf(stderr, "%s is not there\n", name);
	CHECK(found);
	return found;
}

static int calls;

static void called(struct rcu_head *head)
{
	(void)head;
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
}

static void use(const struct use *use)
{
	const struct flavor *flavor = use->flavor;
	struct rcu_head head;
	int calls_before = __atomic_load_n(&calls, __ATOMIC_RELAXED);

	flavor->register_thread();
	flavor->read_lock();
	CHECK(flavor->read_ongoing());
	flavor->read_lock();
	flavor->read_unlock();
	CHECK(flavor->read_ongoing());
	flavor->read_unlock();
	if (!use->is_qsbr)
		CHECK(!flavor->read_ongoing());
	flavor->update_synchronize_rcu();
	flavor->update_call_rcu(&head, called);
	flavor->barrier();
	CHECK(__atomic_load_n(&calls, __ATOMIC_RELAXED) > calls_before);
	flavor->read_lock();
	flavor->read_unlock();
	flavor->unregister_thread();
}

/* Is there before the libraries are, and uses each when they are there. */
static void *older_thread(void *unused)
{
	int i;

	(void)unused;
	sem_post(&has_begun);
	sem_wait(&may_go_on);
	for (i = 0; i < use_count; i++)
		use(&uses[i]);
	return NULL;
}

static int use_all(int count, char **names)
{
	pthread_t thread;
	int i;

	CHECK(count % 2 == 0 && count / 2 <= 16);
	sem_init(&has_begun, 0, 0);
	sem_init(&may_go_on, 0, 0);
	CHECK(pthread_create(&thread, NULL, older_thread, NULL) == 0);
	sem_wait(&has_begun);
	for (i = 0; i < count; i += 2) {
		void *library = open_library(names[i]);
		const char *flavor = names[i + 1];

		if (strcmp(flavor, "-") == 0)
			continue;
		uses[use_count].flavor = symbol(library, "urcu_%s_flavor", flavor);
		uses[use_count].is_qsbr = strcmp(flavor, "qsbr") == 0;
		use_count++;
	}
	for (i = 0; i < use_count; i++)
		use(&uses[i]);
	sem_post(&may_go_on);
	CHECK(pthread_join(thread, NULL) == 0);
	return use_count;
}

static void one(const char *first_name, const char *second_name)
{
	void *first = open_library(first_name), *second = open_library(second_name);

	CHECK(first != second);
	CHECK(symbol(first, "urcu_%s_gp", "memb") == symbol(second, "urcu_%s_gp", "memb"));
	CHECK(symbol(first, "urcu_%s_reader", "memb") == symbol(second, "urcu_%s_reader", "memb"));
	CHECK(symbol(first, "urcu_%s_flavor", "memb") == symbol(second, "urcu_%s_flavor", "memb"));
	uses[use_count++].flavor = symbol(first, "urcu_%s_flavor", "memb");
	use(&uses[0]);
}

/* A plugin that is unloaded leaves readers and workers behind; their code and records must stay. */
static void closed(const char *name, const char *flavor)
{
	void *library = open_library(name);

	uses[0].flavor = symbol(library, "urcu_%s_flavor", flavor);
	uses[0].is_qsbr = strcmp(flavor, "qsbr") == 0;
	use(&uses[0]);
	CHECK(dlclose(library) == 0);
	use(&uses[0]);
	library = open_library(name);
	CHECK(symbol(library, "urcu_%s_flavor", flavor) == (const void *)uses[0].flavor);
}

int main(int argc, char **argv)
{
	if (argc == 4 && strcmp(argv[1], "--one") == 0)
		one(argv[2], argv[3]);
	else if (argc == 4 && strcmp(argv[1], "--closed") == 0)
		closed(argv[2], argv[3]);
	else
		printf("%d used\n", use_all(argc - 1, argv + 1));
	puts("ok");
	return 0;
}
