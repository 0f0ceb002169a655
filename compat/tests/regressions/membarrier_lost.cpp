// SPDX-License-Identifier: MIT OR Apache-2.0
//
// membarrier(2) works when the process starts, and a seccomp filter takes it away. Hazard pointers
// protect nothing then.

#include <hazard_pointer>

#include <cstddef>
#include <cstdio>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

static std::atomic<int> gone;

struct Object : std::hazard_pointer_obj_base<Object> {
	~Object() { gone++; }
};

int main()
{
	(new Object)->retire();
	while (!gone)
		std::this_thread::yield();
	sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_membarrier, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	sock_fprog filter = {4, instructions};
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter))
		return std::puts("no seccomp"), 77;
	(new Object)->retire();
	while (gone < 2)
		std::this_thread::yield();
	std::puts("reclaimed without a fence");
}
