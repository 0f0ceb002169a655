/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Grace periods that no thread waits for: begin one, do something else, ask whether it is over.
 * liburcu has this since 0.14. Under the names of the flavour whose map is in force; declared again
 * for each.
 */
#ifndef _URCU_POLL_H
#define _URCU_POLL_H

#include <stdbool.h>

/* A grace period, as a ticket: to be kept, copied and asked about at any time. */
struct urcu_gp_poll_state {
	unsigned long grace_period_id;
};

#endif

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Sees to it that a grace period which begins from now on will end, and gives its ticket. Does not
 * wait.
 */
extern struct urcu_gp_poll_state start_poll_synchronize_rcu(void);

/* Whether that grace period has ended. Does not wait; once true, always true. */
extern bool poll_state_synchronize_rcu(struct urcu_gp_poll_state state);

#ifdef __cplusplus
}
#endif
