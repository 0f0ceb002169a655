/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * The short names, `rcu_read_lock` and the like, for the flavour bp. The map that is included last
 * counts; <urcu/map/clear.h> takes it away.
 */
#include <urcu/map/clear.h>

/* Readers. */
#define rcu_read_lock				urcu_bp_read_lock
#define rcu_read_unlock				urcu_bp_read_unlock
#define rcu_read_ongoing			urcu_bp_read_ongoing
#define rcu_quiescent_state			urcu_bp_quiescent_state
#define _rcu_read_lock				_urcu_bp_read_lock
#define _rcu_read_unlock			_urcu_bp_read_unlock
#define _rcu_read_ongoing			_urcu_bp_read_ongoing
#define _rcu_quiescent_state			_urcu_bp_quiescent_state
#define rcu_thread_offline			urcu_bp_thread_offline
#define rcu_thread_online			urcu_bp_thread_online
#define rcu_register_thread			urcu_bp_register_thread
#define rcu_unregister_thread			urcu_bp_unregister_thread
#define rcu_init				urcu_bp_init
#define rcu_exit				urcu_bp_exit
#define rcu_reader				urcu_bp_reader
#define rcu_gp					urcu_bp_gp

/* Grace periods. */
#define synchronize_rcu				urcu_bp_synchronize_rcu
#define start_poll_synchronize_rcu		urcu_bp_start_poll_synchronize_rcu
#define poll_state_synchronize_rcu		urcu_bp_poll_state_synchronize_rcu

/* Callbacks. */
#define call_rcu				urcu_bp_call_rcu
#define call_rcu_data_free			urcu_bp_call_rcu_data_free
#define create_call_rcu_data			urcu_bp_create_call_rcu_data
#define create_all_cpu_call_rcu_data		urcu_bp_create_all_cpu_call_rcu_data
#define free_all_cpu_call_rcu_data		urcu_bp_free_all_cpu_call_rcu_data
#define get_call_rcu_data			urcu_bp_get_call_rcu_data
#define get_call_rcu_thread			urcu_bp_get_call_rcu_thread
#define get_cpu_call_rcu_data			urcu_bp_get_cpu_call_rcu_data
#define get_default_call_rcu_data		urcu_bp_get_default_call_rcu_data
#define get_thread_call_rcu_data		urcu_bp_get_thread_call_rcu_data
#define set_cpu_call_rcu_data			urcu_bp_set_cpu_call_rcu_data
#define set_thread_call_rcu_data		urcu_bp_set_thread_call_rcu_data
#define call_rcu_before_fork			urcu_bp_call_rcu_before_fork
#define call_rcu_after_fork_parent		urcu_bp_call_rcu_after_fork_parent
#define call_rcu_after_fork_child		urcu_bp_call_rcu_after_fork_child
#define rcu_barrier				urcu_bp_barrier

/* Deferred calls. */
#define defer_rcu				urcu_bp_defer_rcu
#define rcu_defer_register_thread		urcu_bp_defer_register_thread
#define rcu_defer_unregister_thread		urcu_bp_defer_unregister_thread
#define rcu_defer_barrier			urcu_bp_defer_barrier
#define rcu_defer_barrier_thread		urcu_bp_defer_barrier_thread
#define rcu_defer_exit				urcu_bp_defer_exit

/* The flavour as a structure, and the hash table's fork handlers. */
#define rcu_flavor				urcu_bp_flavor
#define urcu_register_rculfhash_atfork		urcu_bp_register_rculfhash_atfork
#define urcu_unregister_rculfhash_atfork	urcu_bp_unregister_rculfhash_atfork

/* Where a build of the library for tests would yield. */
#define rcu_yield_active			urcu_bp_yield_active
#define rcu_rand_yield				urcu_bp_rand_yield

/* The names of old, before flavours could be mixed in one file. Of every flavour at once. */
#ifndef URCU_NO_COMPAT_IDENTIFIERS
#define rcu_dereference_bp			urcu_bp_dereference
#define rcu_cmpxchg_pointer_bp			urcu_bp_cmpxchg_pointer
#define rcu_xchg_pointer_bp			urcu_bp_xchg_pointer
#define rcu_set_pointer_bp			urcu_bp_set_pointer
#define rcu_bp_before_fork			urcu_bp_before_fork
#define rcu_bp_after_fork_parent		urcu_bp_after_fork_parent
#define rcu_bp_after_fork_child			urcu_bp_after_fork_child
#define rcu_read_lock_bp			urcu_bp_read_lock
#define rcu_read_unlock_bp			urcu_bp_read_unlock
#define rcu_read_ongoing_bp			urcu_bp_read_ongoing
#define _rcu_read_lock_bp			_urcu_bp_read_lock
#define _rcu_read_unlock_bp			_urcu_bp_read_unlock
#define _rcu_read_ongoing_bp			_urcu_bp_read_ongoing
#define rcu_register_thread_bp			urcu_bp_register_thread
#define rcu_unregister_thread_bp		urcu_bp_unregister_thread
#define rcu_init_bp				urcu_bp_init
#define rcu_exit_bp				urcu_bp_exit
#define rcu_reader_bp				urcu_bp_reader
#define rcu_gp_bp				urcu_bp_gp
#define synchronize_rcu_bp			urcu_bp_synchronize_rcu
#define call_rcu_bp				urcu_bp_call_rcu
#define call_rcu_data_free_bp			urcu_bp_call_rcu_data_free
#define create_call_rcu_data_bp			urcu_bp_create_call_rcu_data
#define create_all_cpu_call_rcu_data_bp		urcu_bp_create_all_cpu_call_rcu_data
#define free_all_cpu_call_rcu_data_bp		urcu_bp_free_all_cpu_call_rcu_data
#define get_call_rcu_data_bp			urcu_bp_get_call_rcu_data
#define get_call_rcu_thread_bp			urcu_bp_get_call_rcu_thread
#define get_cpu_call_rcu_data_bp		urcu_bp_get_cpu_call_rcu_data
#define get_default_call_rcu_data_bp		urcu_bp_get_default_call_rcu_data
#define get_thread_call_rcu_data_bp		urcu_bp_get_thread_call_rcu_data
#define set_cpu_call_rcu_data_bp		urcu_bp_set_cpu_call_rcu_data
#define set_thread_call_rcu_data_bp		urcu_bp_set_thread_call_rcu_data
#define call_rcu_before_fork_bp			urcu_bp_call_rcu_before_fork
#define call_rcu_after_fork_parent_bp		urcu_bp_call_rcu_after_fork_parent
#define call_rcu_after_fork_child_bp		urcu_bp_call_rcu_after_fork_child
#define rcu_barrier_bp				urcu_bp_barrier
#define defer_rcu_bp				urcu_bp_defer_rcu
#define rcu_defer_register_thread_bp		urcu_bp_defer_register_thread
#define rcu_defer_unregister_thread_bp		urcu_bp_defer_unregister_thread
#define rcu_defer_barrier_bp			urcu_bp_defer_barrier
#define rcu_defer_barrier_thread_bp		urcu_bp_defer_barrier_thread
#define rcu_defer_exit_bp			urcu_bp_defer_exit
#define rcu_flavor_bp				urcu_bp_flavor
#define urcu_register_rculfhash_atfork_bp	urcu_bp_register_rculfhash_atfork
#define urcu_unregister_rculfhash_atfork_bp	urcu_bp_unregister_rculfhash_atfork
#define rcu_yield_active_bp			urcu_bp_yield_active
#define rcu_rand_yield_bp			urcu_bp_rand_yield
#endif
