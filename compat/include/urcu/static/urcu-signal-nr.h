/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The signal that the flavour was made for. Our library sends none; programs that keep it unblocked
 * lose nothing.
 */
#ifndef _STATIC_URCU_SIGNAL_NR_H
#define _STATIC_URCU_SIGNAL_NR_H

/* SIGURCU is how programs choose another one. */
#ifdef SIGURCU
#define SIGRCU	SIGURCU
#else
#define SIGRCU	SIGUSR1
#endif

#endif
