/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* What the plug-in offers: a name that is read by any thread and replaced by any thread. */
#ifndef PLUGIN_H
#define PLUGIN_H

/* The length of the name, as the calling thread finds it. */
unsigned long plugin_length(void);

/* 0, or -1 without memory. */
int plugin_rename(const char *name);

#endif
