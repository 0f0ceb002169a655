/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The signal for which the flavour is named. Our library sends no signal, so programs may leave it
 * unblocked or not.
 */
#ifndef _STATIC_URCU_SIGNAL_NR_H
#define _STATIC_URCU_SIGNAL_NR_H

/* A program defines SIGURCU to choose another signal. */
#ifdef SIGURCU
#define SIGRCU	SIGURCU
#else
#define SIGRCU	SIGUSR1
#endif

#endif
