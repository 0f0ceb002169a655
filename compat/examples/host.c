/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program that knows nothing of RCU, and loads plugin.so of its argument while threads run. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

#include "check.h"

enum {
	THREADS = 4,
	RENAMES = 2000,
};

static unsigned long (*length)(void);
static int (*rename_it)(const char *);
static atomic_bool is_loaded, is_over;

static void *call(void *unused)
{
	(void)unused;
	while (!atomic_load(&is_loaded))
		;
	while (!atomic_load(&is_over)) {
		unsigned long found = length();

		CHECK(found == 5 || found == 11);
	}
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	void *plugin;

	CHECK(argc == 2);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_create(&threads[i], NULL, call, NULL));
	plugin = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
	if (!plugin) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	*(void **)&length = dlsym(plugin, "plugin_length");
	*(void **)&rename_it = dlsym(plugin, "plugin_rename");
	CHECK(length && rename_it && length() == 0);
	CHECK(!rename_it("short"));
	atomic_store(&is_loaded, 1);
	for (int i = 0; i < RENAMES; i++)
		CHECK(!rename_it(i % 2 ? "short" : "longer name"));
	atomic_store(&is_over, 1);
	for (int i = 0; i < THREADS; i++)
		CHECK(!pthread_join(threads[i], NULL));
	puts("plugin: ok");
	return 0;
}
