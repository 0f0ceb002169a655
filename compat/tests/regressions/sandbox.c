/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A process that can make no more threads, by a seccomp filter.
 *
 * sandbox prepared	the worker's thread was made before; to make another one kills
 * sandbox unprepared	it was not; to make one fails, and barriers run what waits
 */
#include "flavor.h"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <semaphore.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static sem_t ran;

static void has_run(struct rcu_head *head)
{
	(void) head;
	sem_post(&ran);
}

static int can_be_confined(unsigned int on_clone)
{
	struct sock_filter instructions[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_clone3, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, on_clone),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog filter = { 5, instructions };

	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	return !syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter);
}

int main(int argc, char **argv)
{
	static struct rcu_head heads[3];
	int is_prepared = argc == 2 && !strcmp(argv[1], "prepared");

	sem_init(&ran, 0, 0);
	if (is_prepared)
		URCU(get_default_call_rcu_data)();
	if (!can_be_confined(is_prepared ? SECCOMP_RET_KILL_PROCESS : SECCOMP_RET_ERRNO | 11))
		return 77;
	for (int i = 0; i < 3; i++) {
		URCU(call_rcu)(&heads[i], has_run);
		if (!is_prepared)
			URCU(barrier)();
		CHECK(!sem_wait(&ran));
	}
	puts("ok");
	return 0;
}
