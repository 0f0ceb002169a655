/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A flavour as a structure of functions, for code written for any flavour: the hash table is passed
 * one.
 */
#ifndef _URCU_FLAVOR_H
#define _URCU_FLAVOR_H

#include <stdbool.h>
#include <urcu/urcu-poll.h>

struct rcu_head;

/* What the hash table does around fork(); priv is given to each. */
struct urcu_atfork {
	void (*before_fork)(void *priv);
	void (*after_fork_parent)(void *priv);
	void (*after_fork_child)(void *priv);
	void *priv;
};

/*
 * The functions of a flavour; its header says what each does. A function that a flavour does not
 * need does nothing. Programs contain copies of these structures, so the order must not change.
 */
struct rcu_flavor_struct {
	void (*read_lock)(void);
	void (*read_unlock)(void);
	int (*read_ongoing)(void);
	void (*read_quiescent_state)(void);
	void (*update_call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head));
	void (*update_synchronize_rcu)(void);
	void (*update_defer_rcu)(void (*fct)(void *p), void *p);

	void (*thread_offline)(void);
	void (*thread_online)(void);
	void (*register_thread)(void);
	void (*unregister_thread)(void);

	void (*barrier)(void);

	void (*register_rculfhash_atfork)(struct urcu_atfork *atfork);
	void (*unregister_rculfhash_atfork)(struct urcu_atfork *atfork);

	/* Since liburcu 0.14. A program that was linked with 0.13 has a copy that ends before these. */
	struct urcu_gp_poll_state (*update_start_poll_synchronize_rcu)(void);
	bool (*update_poll_state_synchronize_rcu)(struct urcu_gp_poll_state state);
};

#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The flavour whose short names are in force: urcu_memb_flavor, and so on. */
extern const struct rcu_flavor_struct rcu_flavor;

/*
 * For the library of the hash table: makes call_rcu_before_fork() and its kin call these functions.
 * *atfork still belongs to the caller, and must stay valid until it is unregistered.
 */
extern void urcu_register_rculfhash_atfork(struct urcu_atfork *atfork);
extern void urcu_unregister_rculfhash_atfork(struct urcu_atfork *atfork);

#ifdef __cplusplus
}
#endif
