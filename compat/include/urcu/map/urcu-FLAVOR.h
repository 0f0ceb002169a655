/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The short names, such as `rcu_read_lock`, for the flavour @flavor@. The map included last is in
 * effect; <urcu/map/clear.h> undefines it.
 */
#include <urcu/map/clear.h>

/* Readers. */
#define rcu_read_lock				urcu_@flavor@_read_lock
#define rcu_read_unlock				urcu_@flavor@_read_unlock
#define rcu_read_ongoing			urcu_@flavor@_read_ongoing
#define rcu_quiescent_state			urcu_@flavor@_quiescent_state
#define _rcu_read_lock				_urcu_@flavor@_read_lock
#define _rcu_read_unlock			_urcu_@flavor@_read_unlock
#define _rcu_read_ongoing			_urcu_@flavor@_read_ongoing
#define _rcu_quiescent_state			_urcu_@flavor@_quiescent_state
#define rcu_thread_offline			urcu_@flavor@_thread_offline
#define rcu_thread_online			urcu_@flavor@_thread_online
#define rcu_register_thread			urcu_@flavor@_register_thread
#define rcu_unregister_thread			urcu_@flavor@_unregister_thread
#define rcu_init				urcu_@flavor@_init
#define rcu_exit				urcu_@flavor@_exit
#define rcu_reader				urcu_@flavor@_reader
#define rcu_gp					urcu_@flavor@_gp

/* Grace periods. */
#define synchronize_rcu				urcu_@flavor@_synchronize_rcu
#define start_poll_synchronize_rcu		urcu_@flavor@_start_poll_synchronize_rcu
#define poll_state_synchronize_rcu		urcu_@flavor@_poll_state_synchronize_rcu

/* Callbacks. */
#define call_rcu				urcu_@flavor@_call_rcu
#define call_rcu_data_free			urcu_@flavor@_call_rcu_data_free
#define create_call_rcu_data			urcu_@flavor@_create_call_rcu_data
#define create_all_cpu_call_rcu_data		urcu_@flavor@_create_all_cpu_call_rcu_data
#define free_all_cpu_call_rcu_data		urcu_@flavor@_free_all_cpu_call_rcu_data
#define get_call_rcu_data			urcu_@flavor@_get_call_rcu_data
#define get_call_rcu_thread			urcu_@flavor@_get_call_rcu_thread
#define get_cpu_call_rcu_data			urcu_@flavor@_get_cpu_call_rcu_data
#define get_default_call_rcu_data		urcu_@flavor@_get_default_call_rcu_data
#define get_thread_call_rcu_data		urcu_@flavor@_get_thread_call_rcu_data
#define set_cpu_call_rcu_data			urcu_@flavor@_set_cpu_call_rcu_data
#define set_thread_call_rcu_data		urcu_@flavor@_set_thread_call_rcu_data
#define call_rcu_before_fork			urcu_@flavor@_call_rcu_before_fork
#define call_rcu_after_fork_parent		urcu_@flavor@_call_rcu_after_fork_parent
#define call_rcu_after_fork_child		urcu_@flavor@_call_rcu_after_fork_child
#define rcu_barrier				urcu_@flavor@_barrier

/* Deferred calls. */
#define defer_rcu				urcu_@flavor@_defer_rcu
#define rcu_defer_register_thread		urcu_@flavor@_defer_register_thread
#define rcu_defer_unregister_thread		urcu_@flavor@_defer_unregister_thread
#define rcu_defer_barrier			urcu_@flavor@_defer_barrier
#define rcu_defer_barrier_thread		urcu_@flavor@_defer_barrier_thread
#define rcu_defer_exit				urcu_@flavor@_defer_exit

/* The flavour as a structure, and the hash table's fork handlers. */
#define rcu_flavor				urcu_@flavor@_flavor
#define urcu_register_rculfhash_atfork		urcu_@flavor@_register_rculfhash_atfork
#define urcu_unregister_rculfhash_atfork	urcu_@flavor@_unregister_rculfhash_atfork

//@ bp
/* Where liburcu's builds for tests yield the CPU. */
#define rcu_yield_active			urcu_@flavor@_yield_active
#define rcu_rand_yield				urcu_@flavor@_rand_yield

//@ all
/* Older names, which contain the flavour. Those of several flavours can be defined at once. */
#ifndef URCU_NO_COMPAT_IDENTIFIERS
#define rcu_dereference_@old@ urcu_@flavor@_dereference
#define rcu_cmpxchg_pointer_@old@ urcu_@flavor@_cmpxchg_pointer
#define rcu_xchg_pointer_@old@ urcu_@flavor@_xchg_pointer
#define rcu_set_pointer_@old@ urcu_@flavor@_set_pointer
#define rcu_@old@_before_fork urcu_@flavor@_before_fork
#define rcu_@old@_after_fork_parent urcu_@flavor@_after_fork_parent
#define rcu_@old@_after_fork_child urcu_@flavor@_after_fork_child
#define rcu_read_lock_@old@ urcu_@flavor@_read_lock
#define rcu_read_unlock_@old@ urcu_@flavor@_read_unlock
#define rcu_read_ongoing_@old@ urcu_@flavor@_read_ongoing
#define _rcu_read_lock_@old@ _urcu_@flavor@_read_lock
#define _rcu_read_unlock_@old@ _urcu_@flavor@_read_unlock
#define _rcu_read_ongoing_@old@ _urcu_@flavor@_read_ongoing
#define rcu_register_thread_@old@ urcu_@flavor@_register_thread
#define rcu_unregister_thread_@old@ urcu_@flavor@_unregister_thread
#define rcu_init_@old@ urcu_@flavor@_init
#define rcu_exit_@old@ urcu_@flavor@_exit
#define rcu_reader_@old@ urcu_@flavor@_reader
#define rcu_gp_@old@ urcu_@flavor@_gp
#define synchronize_rcu_@old@ urcu_@flavor@_synchronize_rcu
#define call_rcu_@old@ urcu_@flavor@_call_rcu
#define call_rcu_data_free_@old@ urcu_@flavor@_call_rcu_data_free
#define create_call_rcu_data_@old@ urcu_@flavor@_create_call_rcu_data
#define create_all_cpu_call_rcu_data_@old@ urcu_@flavor@_create_all_cpu_call_rcu_data
#define free_all_cpu_call_rcu_data_@old@ urcu_@flavor@_free_all_cpu_call_rcu_data
#define get_call_rcu_data_@old@ urcu_@flavor@_get_call_rcu_data
#define get_call_rcu_thread_@old@ urcu_@flavor@_get_call_rcu_thread
#define get_cpu_call_rcu_data_@old@ urcu_@flavor@_get_cpu_call_rcu_data
#define get_default_call_rcu_data_@old@ urcu_@flavor@_get_default_call_rcu_data
#define get_thread_call_rcu_data_@old@ urcu_@flavor@_get_thread_call_rcu_data
#define set_cpu_call_rcu_data_@old@ urcu_@flavor@_set_cpu_call_rcu_data
#define set_thread_call_rcu_data_@old@ urcu_@flavor@_set_thread_call_rcu_data
#define call_rcu_before_fork_@old@ urcu_@flavor@_call_rcu_before_fork
#define call_rcu_after_fork_parent_@old@ urcu_@flavor@_call_rcu_after_fork_parent
#define call_rcu_after_fork_child_@old@ urcu_@flavor@_call_rcu_after_fork_child
#define rcu_barrier_@old@ urcu_@flavor@_barrier
#define defer_rcu_@old@ urcu_@flavor@_defer_rcu
#define rcu_defer_register_thread_@old@ urcu_@flavor@_defer_register_thread
#define rcu_defer_unregister_thread_@old@ urcu_@flavor@_defer_unregister_thread
#define rcu_defer_barrier_@old@ urcu_@flavor@_defer_barrier
#define rcu_defer_barrier_thread_@old@ urcu_@flavor@_defer_barrier_thread
#define rcu_defer_exit_@old@ urcu_@flavor@_defer_exit
#define rcu_flavor_@old@ urcu_@flavor@_flavor
#define urcu_register_rculfhash_atfork_@old@ urcu_@flavor@_register_rculfhash_atfork
#define urcu_unregister_rculfhash_atfork_@old@ urcu_@flavor@_unregister_rculfhash_atfork
//@ bp
#define rcu_yield_active_@old@ urcu_@flavor@_yield_active
#define rcu_rand_yield_@old@ urcu_@flavor@_rand_yield
//@ all
#endif
