/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* A plug-in with a flavour of its own, out of an archive. */
#include "../abi/flavor.h"

void plugin_waits(void);

void plugin_waits(void)
{
	synchronize_rcu();
}
