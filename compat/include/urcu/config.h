/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * How the library was built, for programs that check. This one is always for Linux, many CPUs and
 * futexes.
 */
#ifndef _URCU_CONFIG_H
#define _URCU_CONFIG_H

#define CONFIG_RCU_SMP 1
#define CONFIG_RCU_TLS 1
#define CONFIG_RCU_HAVE_CLOCK_GETTIME 1
#define CONFIG_RCU_HAVE_MULTIFLAVOR 1
/* Operations that were full fences up to liburcu 0.14 still are. */
#define CONFIG_RCU_EMIT_LEGACY_MB 1

#endif
