/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A program that says that all systems which it runs on have membarrier(2), as its readers may. */
#define _LGPL_SOURCE
#define CONFIG_RCU_FORCE_SYS_MEMBARRIER
#include "flavor.h"

int main(void)
{
	URCU(register_thread)();
	URCU(read_lock)();
	URCU(read_unlock)();
	URCU(flavor).unregister_thread();
	puts("ok");
	return 0;
}
