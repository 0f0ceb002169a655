/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The flavour bp in a plug-in: its functions are called by threads that it does not know, which
 * register themselves in their first section and unregister when they end.
 */
#include "plugin.h"

#include <stdlib.h>
#include <string.h>
#include <urcu/urcu-bp.h>

struct name {
	unsigned long length;
	char text[];
};

static struct name *current;

unsigned long plugin_length(void)
{
	unsigned long length;
	struct name *name;

	urcu_bp_read_lock();
	name = rcu_dereference(current);
	length = name ? name->length : 0;
	if (name && strlen(name->text) != length)
		abort();
	urcu_bp_read_unlock();
	return length;
}

int plugin_rename(const char *text)
{
	size_t length = strlen(text);
	struct name *new = malloc(sizeof(*new) + length + 1), *old;

	if (!new)
		return -1;
	new->length = length;
	memcpy(new->text, text, length + 1);
	old = rcu_xchg_pointer(&current, new);
	urcu_bp_synchronize_rcu();
	if (old)
		old->text[0] = '\0';
	free(old);
	return 0;
}
