// SPDX-License-Identifier: MIT OR Apache-2.0
// Where no flavour of liburcu is in the process, a child of fork() frees what it retires.

#include <hazard_pointer>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

std::atomic<int> freed{0};

struct node : quiescence::hazard_pointer_obj_base<node> {
	~node() { freed++; }
};

void all_are_freed(int count)
{
	int before = freed;
	for (int each = 0; each < count; each++)
		(new node)->retire();
	while (freed != before + count)
		usleep(1000);
}

} // namespace

int main()
{
	if (dlsym(RTLD_DEFAULT, "urcu_memb_read_lock"))
		return 2; // linked with --as-needed it is not there
	all_are_freed(100);
	pid_t child = fork();
	if (!child) {
		alarm(20);
		all_are_freed(1000);
		_exit(0);
	}
	int status;
	if (waitpid(child, &status, 0) != child || status != 0)
		return 3;
	all_are_freed(1000);
	std::puts("ok");
}
