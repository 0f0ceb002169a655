/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * What the thin libraries ask of libquiescence.so.0. Not installed; the flavour is always the first argument.
 * Structures are those of the public headers, here by name only.
 */
#ifndef QUIESCENCE_SHIM_CORE_H
#define QUIESCENCE_SHIM_CORE_H

#include <sched.h>
#include <pthread.h>
#include <stdbool.h>

struct rcu_head;
struct call_rcu_data;
struct urcu_atfork;

enum quiescence_flavor {
	QUIESCENCE_MEMB = 0,
	QUIESCENCE_MB = 1,
	QUIESCENCE_QSBR = 2,
	QUIESCENCE_BP = 3,
	QUIESCENCE_SIGNAL = 4,
};

/* Where a flavour's symbols are, as the dynamic linker has them: copy relocations included. Lives for ever. */
struct quiescence_shim {
	unsigned int flavor;
	void *gp;			/* struct urcu_gp: ctr at 0, futex at 8 */
	int *has_sys_membarrier;	/* to be set, or NULL */
	void *(*reader)(void);		/* the calling thread's record; for bp the place of the pointer to it */
};

/* Once, by the thin library's constructor, before anything else. A second call changes nothing. */
void quiescence_urcu_attach(const struct quiescence_shim *shim);

/*
 * Writes what 0.14 has added to the flavour's structure into an executable's copy of it, if that is
 * so big. `found` is where the dynamic linker has the symbol, `whole` the library's own, of 128
 * bytes.
 */
void quiescence_urcu_complete_flavor(unsigned int flavor, void *found, const void *whole);

void quiescence_urcu_register_thread(unsigned int flavor);
void quiescence_urcu_unregister_thread(unsigned int flavor);
/* bp: gives the calling thread a record and stores it at reader(). */
void quiescence_urcu_bp_register(void);
/* <rcu>: makes the calling thread a reader until it ends, if it is none. Part of the interface: inlined in programs. */
void quiescence_urcu_reader(unsigned int flavor);
void quiescence_urcu_synchronize(unsigned int flavor);
/* A reader that has left finds gp.futex at -1, or a QSBR reader its waiting word set: by the shim's slow paths. */
void quiescence_urcu_before_fork(unsigned int flavor);
void quiescence_urcu_after_fork_parent(unsigned int flavor);
void quiescence_urcu_after_fork_child(unsigned int flavor);

/* struct urcu_gp_poll_state is one unsigned long. */
unsigned long quiescence_urcu_start_poll(unsigned int flavor);
bool quiescence_urcu_poll_state(unsigned int flavor, unsigned long state);

void quiescence_urcu_call_rcu(unsigned int flavor, struct rcu_head *head, void (*func)(struct rcu_head *));
void quiescence_urcu_barrier(unsigned int flavor);
struct call_rcu_data *quiescence_urcu_create_call_rcu_data(unsigned int flavor, unsigned long flags, int cpu_affinity);
void quiescence_urcu_call_rcu_data_free(unsigned int flavor, struct call_rcu_data *crdp);
struct call_rcu_data *quiescence_urcu_get_default_call_rcu_data(unsigned int flavor);
struct call_rcu_data *quiescence_urcu_get_cpu_call_rcu_data(unsigned int flavor, int cpu);
struct call_rcu_data *quiescence_urcu_get_thread_call_rcu_data(unsigned int flavor);
struct call_rcu_data *quiescence_urcu_get_call_rcu_data(unsigned int flavor);
pthread_t quiescence_urcu_get_call_rcu_thread(unsigned int flavor, struct call_rcu_data *crdp);
void quiescence_urcu_set_thread_call_rcu_data(unsigned int flavor, struct call_rcu_data *crdp);
int quiescence_urcu_set_cpu_call_rcu_data(unsigned int flavor, int cpu, struct call_rcu_data *crdp);
int quiescence_urcu_create_all_cpu_call_rcu_data(unsigned int flavor, unsigned long flags);
void quiescence_urcu_free_all_cpu_call_rcu_data(unsigned int flavor);
void quiescence_urcu_call_rcu_before_fork(unsigned int flavor);
void quiescence_urcu_call_rcu_after_fork_parent(unsigned int flavor);
void quiescence_urcu_call_rcu_after_fork_child(unsigned int flavor);
void quiescence_urcu_register_rculfhash_atfork(unsigned int flavor, struct urcu_atfork *atfork);
void quiescence_urcu_unregister_rculfhash_atfork(unsigned int flavor, struct urcu_atfork *atfork);

void quiescence_urcu_defer_rcu(unsigned int flavor, void (*fct)(void *p), void *p);
int quiescence_urcu_defer_register_thread(unsigned int flavor);
void quiescence_urcu_defer_unregister_thread(unsigned int flavor);
void quiescence_urcu_defer_barrier(unsigned int flavor);
void quiescence_urcu_defer_barrier_thread(unsigned int flavor);
void quiescence_urcu_defer_exit(unsigned int flavor);

/* In a registered thread's record, so many bytes from its beginning, there is an int that is not 0. */
#define QUIESCENCE_REGISTERED 152

/* Whether QUIESCENCE_DEBUG=1 asks for checks that cost something. */
bool quiescence_urcu_debugging(void);

/* Says what is wrong and what to do, and ends the process. */
void quiescence_urcu_fatal(unsigned int flavor, const char *what) __attribute__((noreturn));

/* Says what is wrong with an unlock outside of any section, once, and returns; ends the process if asked to. */
void quiescence_urcu_unlock_outside(unsigned int flavor, const char *what);

/*
 * The data structures: for every exported function cds_X or __cds_X or urcu_workqueue_X of liburcu-common and
 * liburcu-cds the core exports quiescence_cds_X, quiescence___cds_X, quiescence_urcu_workqueue_X with the same
 * signature; the thin libraries jump there.
 */

#endif
