/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The ticket of a grace period that is polled: start_poll_synchronize_rcu() and
 * poll_state_synchronize_rcu(), of each flavour, are in the flavour's header. liburcu has them
 * since 0.14.
 */
#ifndef _URCU_POLL_H
#define _URCU_POLL_H

/* A grace period. May be kept, copied, and asked about at any time. */
struct urcu_gp_poll_state {
	unsigned long grace_period_id;
};

#endif
