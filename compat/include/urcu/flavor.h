/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * A flavour as a structure of functions, for code that is written for any: the hash table is given
 * one.
 */
#ifndef _URCU_FLAVOR_H
#define _URCU_FLAVOR_H

struct rcu_head;

/* What the hash table does around fork(); priv is given to each. */
struct urcu_atfork {
	void (*before_fork)(void *priv);
	void (*after_fork_parent)(void *priv);
	void (*after_fork_child)(void *priv);
	void *priv;
};

/* Programs copy one into themselves: its size, of liburcu 0.13, may not change. */
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
};

#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Of the flavour whose map is in force. */
extern const struct rcu_flavor_struct rcu_flavor;

/* For the hash table's library. */
extern void urcu_register_rculfhash_atfork(struct urcu_atfork *atfork);
extern void urcu_unregister_rculfhash_atfork(struct urcu_atfork *atfork);

#ifdef __cplusplus
}
#endif
