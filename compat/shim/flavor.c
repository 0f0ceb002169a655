/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * One flavour's thin library: what clients see of it under liburcu's names. Compiled once for each flavour, with
 * SHIM_MEMB, SHIM_MB, SHIM_QSBR, SHIM_BP or SHIM_SIGNAL defined.
 *
 * Here are only what C defines best, data and thread-local symbols, and the few instructions of a reader, which are the
 * public headers' own. All else is passed on to libquiescence.so.0 with the flavour's number in front (core.h).
 *
 * Own data is reached as a client reaches it, through the global offset table: an executable may have copied it into
 * itself. For the same reason the sizes are part of the interface. No function here uses vector registers
 * (-mgeneral-regs-only): glibc before 2.40 does not keep them while it makes a dlopened library's thread-local
 * storage, behind the compiler's back.
 */
#define _GNU_SOURCE

#if defined(SHIM_MEMB)
# include <urcu/urcu-memb.h>
# include <urcu/static/urcu-memb.h>
# define SHIM_NUMBER QUIESCENCE_MEMB
# define URCU(name) urcu_memb_##name
# define INLINED(name) _urcu_memb_##name
#elif defined(SHIM_MB)
# include <urcu/urcu-mb.h>
# include <urcu/static/urcu-mb.h>
# define SHIM_NUMBER QUIESCENCE_MB
# define URCU(name) urcu_mb_##name
# define INLINED(name) _urcu_mb_##name
#elif defined(SHIM_QSBR)
# include <urcu/urcu-qsbr.h>
# include <urcu/static/urcu-qsbr.h>
# define SHIM_NUMBER QUIESCENCE_QSBR
# define URCU(name) urcu_qsbr_##name
# define INLINED(name) _urcu_qsbr_##name
#elif defined(SHIM_BP)
# include <urcu/urcu-bp.h>
# include <urcu/static/urcu-bp.h>
# define SHIM_NUMBER QUIESCENCE_BP
# define URCU(name) urcu_bp_##name
# define INLINED(name) _urcu_bp_##name
#elif defined(SHIM_SIGNAL)
# include <urcu/urcu-signal.h>
# include <urcu/static/urcu-signal.h>
# define SHIM_NUMBER QUIESCENCE_SIGNAL
# define URCU(name) urcu_signal_##name
# define INLINED(name) _urcu_signal_##name
#else
# error "no flavour chosen"
#endif

#include <urcu/flavor.h>
#include <urcu/urcu-poll.h>

#include "core.h"

/* The headers give clients short names (`rcu_read_lock`, `call_rcu`) by macros. Here only the long ones are used. */
#include <urcu/map/clear.h>

/*
 * ---- Data: names and sizes are the interface's ----
 */

#if defined(SHIM_BP)
struct urcu_bp_gp URCU(gp) = { .ctr = 1 };
__thread struct urcu_bp_reader *URCU(reader);
_Static_assert(sizeof(struct urcu_bp_gp) == 128, "copied by executables");
_Static_assert(sizeof(struct urcu_bp_reader) == 256, "a slot and its tail");
#else
struct urcu_gp URCU(gp) = { .ctr = 1 };
# if defined(SHIM_QSBR)
__thread struct urcu_qsbr_reader URCU(reader);
# else
__thread struct urcu_reader URCU(reader);
# endif
_Static_assert(sizeof(struct urcu_gp) == 128, "copied by executables");
_Static_assert(sizeof(URCU(reader)) == 256, "a slot and its tail");
#endif

#if defined(SHIM_MEMB) || defined(SHIM_BP)
int URCU(has_sys_membarrier);
# define SHIM_HAS_SYS_MEMBARRIER (&URCU(has_sys_membarrier))
#else
# define SHIM_HAS_SYS_MEMBARRIER NULL
#endif

/*
 * ---- Begin and end ----
 */

static void *reader_of_this_thread(void)
{
	return (void *)&URCU(reader);
}

/* Addresses that the dynamic linker fills in: where the symbols are in this process. */
static const struct quiescence_shim shim = {
	.flavor = SHIM_NUMBER,
	.gp = &URCU(gp),
	.has_sys_membarrier = SHIM_HAS_SYS_MEMBARRIER,
	.reader = reader_of_this_thread,
};

/* Whether mistakes are looked for that cost something to find. */
static bool is_debugging;

static void complete_copy(void);

/*
 * Before the program's own constructors, which may read: out of an archive by the number alone. And
 * by the first thread that registers, if that comes before: a second one must not do so at the same
 * time, and would find it half done. In an executable's .preinit_array libc knows no environment
 * yet: the library's settings are as if none were set.
 */
static void __attribute__((constructor(102))) attach(void)
{
	static bool is_attached;

	if (is_attached)
		return;
	is_attached = true;
	quiescence_urcu_attach(&shim);
	complete_copy();
	is_debugging = quiescence_urcu_debugging();
}

#if defined(SHIM_MEMB) || defined(SHIM_MB) || defined(SHIM_SIGNAL)
/* For constructors of libraries that are initialised before this one. */
void URCU(init)(void)
{
	attach();
}
#endif

#if !defined(SHIM_BP)
void URCU(exit)(void);

/* Nothing is left to be undone. */
void URCU(exit)(void)
{
}
#endif

/*
 * ---- Readers ----
 */

#if !defined(SHIM_BP)
/* Where the mark is, is the core's to say. */
static inline bool is_nobody(void)
{
	return __builtin_expect(is_debugging, 0) &&
		!*((unsigned int *)((char *)&URCU(reader) + QUIESCENCE_REGISTERED));
}
# define LOOK_FOR_NOBODY(function) \
	do { \
		if (is_nobody()) \
			quiescence_urcu_fatal(SHIM_NUMBER, function "() by a thread that is not registered: no updater " \
					"waits for it; call rcu_register_thread() first, in that thread"); \
	} while (0)
#else
/* bp registers by itself. */
# define LOOK_FOR_NOBODY(function) do { } while (0)
#endif

/*
 * One too many would leave a word that looks like four thousand million sections, and no grace period
 * would end any more: it is named, and does nothing. In QSBR there is nothing to count.
 */
static inline bool is_a_section_to_leave(void)
{
#if !defined(SHIM_QSBR)
	if (__builtin_expect(!INLINED(read_ongoing)(), 0)) {
		quiescence_urcu_unlock_outside(SHIM_NUMBER,
				"rcu_read_unlock() outside a read-side critical section: call it "
				"once for each rcu_read_lock(), in the same thread");
		return false;
	}
#endif
	return true;
}

/* Under labels, for the header of QSBR makes functions without code of them, inline for everybody. */
#define LABEL(name) LABEL_OF(URCU(name))
#define LABEL_OF(name) LABEL_TEXT(name)
#define LABEL_TEXT(name) #name
void read_lock(void) __asm__(LABEL(read_lock));
void read_unlock(void) __asm__(LABEL(read_unlock));

void read_lock(void)
{
	LOOK_FOR_NOBODY("rcu_read_lock");
	INLINED(read_lock)();
}

void read_unlock(void)
{
	if (is_a_section_to_leave())
		INLINED(read_unlock)();
}

int URCU(read_ongoing)(void)
{
	return INLINED(read_ongoing)();
}

#if defined(SHIM_QSBR)
void URCU(quiescent_state)(void)
{
	LOOK_FOR_NOBODY("rcu_quiescent_state");
	INLINED(quiescent_state)();
}

void URCU(thread_offline)(void)
{
	INLINED(thread_offline)();
}

void URCU(thread_online)(void)
{
	LOOK_FOR_NOBODY("rcu_thread_online");
	INLINED(thread_online)();
}
#endif

#if defined(SHIM_BP)
/* Called by inlined readers as well, in a thread's first section. */
void URCU(register)(void)
{
	attach();
	quiescence_urcu_bp_register();
}

void URCU(register_thread)(void)
{
	if (!URCU(reader))
		URCU(register)();
}
#else
void URCU(register_thread)(void)
{
	attach();
	quiescence_urcu_register_thread(SHIM_NUMBER);
}

void URCU(unregister_thread)(void)
{
	quiescence_urcu_unregister_thread(SHIM_NUMBER);
}
#endif

/*
 * ---- Grace periods ----
 */

void URCU(synchronize_rcu)(void)
{
	quiescence_urcu_synchronize(SHIM_NUMBER);
}

/* liburcu's since 0.14. */
struct urcu_gp_poll_state URCU(start_poll_synchronize_rcu)(void);
bool URCU(poll_state_synchronize_rcu)(struct urcu_gp_poll_state state);

struct urcu_gp_poll_state URCU(start_poll_synchronize_rcu)(void)
{
	struct urcu_gp_poll_state state = { .grace_period_id = quiescence_urcu_start_poll(SHIM_NUMBER) };

	return state;
}

bool URCU(poll_state_synchronize_rcu)(struct urcu_gp_poll_state state)
{
	return quiescence_urcu_poll_state(SHIM_NUMBER, state.grace_period_id);
}

#if defined(SHIM_BP)
void URCU(before_fork)(void)
{
	quiescence_urcu_before_fork(SHIM_NUMBER);
}

void URCU(after_fork_parent)(void)
{
	quiescence_urcu_after_fork_parent(SHIM_NUMBER);
}

void URCU(after_fork_child)(void)
{
	quiescence_urcu_after_fork_child(SHIM_NUMBER);
}
#endif

/*
 * ---- Callbacks ----
 */

void URCU(call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head));
void URCU(barrier)(void);
struct call_rcu_data *URCU(create_call_rcu_data)(unsigned long flags, int cpu_affinity);
void URCU(call_rcu_data_free)(struct call_rcu_data *crdp);
struct call_rcu_data *URCU(get_default_call_rcu_data)(void);
struct call_rcu_data *URCU(get_cpu_call_rcu_data)(int cpu);
struct call_rcu_data *URCU(get_thread_call_rcu_data)(void);
struct call_rcu_data *URCU(get_call_rcu_data)(void);
pthread_t URCU(get_call_rcu_thread)(struct call_rcu_data *crdp);
void URCU(set_thread_call_rcu_data)(struct call_rcu_data *crdp);
int URCU(set_cpu_call_rcu_data)(int cpu, struct call_rcu_data *crdp);
int URCU(create_all_cpu_call_rcu_data)(unsigned long flags);
void URCU(free_all_cpu_call_rcu_data)(void);
void URCU(call_rcu_before_fork)(void);
void URCU(call_rcu_after_fork_parent)(void);
void URCU(call_rcu_after_fork_child)(void);
void URCU(register_rculfhash_atfork)(struct urcu_atfork *atfork);
void URCU(unregister_rculfhash_atfork)(struct urcu_atfork *atfork);

void URCU(call_rcu)(struct rcu_head *head, void (*func)(struct rcu_head *head))
{
	quiescence_urcu_call_rcu(SHIM_NUMBER, head, func);
}

void URCU(barrier)(void)
{
	quiescence_urcu_barrier(SHIM_NUMBER);
}

struct call_rcu_data *URCU(create_call_rcu_data)(unsigned long flags, int cpu_affinity)
{
	return quiescence_urcu_create_call_rcu_data(SHIM_NUMBER, flags, cpu_affinity);
}

void URCU(call_rcu_data_free)(struct call_rcu_data *crdp)
{
	quiescence_urcu_call_rcu_data_free(SHIM_NUMBER, crdp);
}

struct call_rcu_data *URCU(get_default_call_rcu_data)(void)
{
	return quiescence_urcu_get_default_call_rcu_data(SHIM_NUMBER);
}

struct call_rcu_data *URCU(get_cpu_call_rcu_data)(int cpu)
{
	return quiescence_urcu_get_cpu_call_rcu_data(SHIM_NUMBER, cpu);
}

struct call_rcu_data *URCU(get_thread_call_rcu_data)(void)
{
	return quiescence_urcu_get_thread_call_rcu_data(SHIM_NUMBER);
}

struct call_rcu_data *URCU(get_call_rcu_data)(void)
{
	return quiescence_urcu_get_call_rcu_data(SHIM_NUMBER);
}

pthread_t URCU(get_call_rcu_thread)(struct call_rcu_data *crdp)
{
	return quiescence_urcu_get_call_rcu_thread(SHIM_NUMBER, crdp);
}

void URCU(set_thread_call_rcu_data)(struct call_rcu_data *crdp)
{
	quiescence_urcu_set_thread_call_rcu_data(SHIM_NUMBER, crdp);
}

int URCU(set_cpu_call_rcu_data)(int cpu, struct call_rcu_data *crdp)
{
	return quiescence_urcu_set_cpu_call_rcu_data(SHIM_NUMBER, cpu, crdp);
}

int URCU(create_all_cpu_call_rcu_data)(unsigned long flags)
{
	return quiescence_urcu_create_all_cpu_call_rcu_data(SHIM_NUMBER, flags);
}

void URCU(free_all_cpu_call_rcu_data)(void)
{
	quiescence_urcu_free_all_cpu_call_rcu_data(SHIM_NUMBER);
}

void URCU(call_rcu_before_fork)(void)
{
	quiescence_urcu_call_rcu_before_fork(SHIM_NUMBER);
}

void URCU(call_rcu_after_fork_parent)(void)
{
	quiescence_urcu_call_rcu_after_fork_parent(SHIM_NUMBER);
}

void URCU(call_rcu_after_fork_child)(void)
{
	quiescence_urcu_call_rcu_after_fork_child(SHIM_NUMBER);
}

void URCU(register_rculfhash_atfork)(struct urcu_atfork *atfork)
{
	quiescence_urcu_register_rculfhash_atfork(SHIM_NUMBER, atfork);
}

void URCU(unregister_rculfhash_atfork)(struct urcu_atfork *atfork)
{
	quiescence_urcu_unregister_rculfhash_atfork(SHIM_NUMBER, atfork);
}

/*
 * ---- Deferred calls ----
 */

void URCU(defer_rcu)(void (*fct)(void *p), void *p);
int URCU(defer_register_thread)(void);
void URCU(defer_unregister_thread)(void);
void URCU(defer_barrier)(void);
void URCU(defer_barrier_thread)(void);
void URCU(defer_exit)(void);

void URCU(defer_rcu)(void (*fct)(void *p), void *p)
{
	quiescence_urcu_defer_rcu(SHIM_NUMBER, fct, p);
}

int URCU(defer_register_thread)(void)
{
	return quiescence_urcu_defer_register_thread(SHIM_NUMBER);
}

void URCU(defer_unregister_thread)(void)
{
	quiescence_urcu_defer_unregister_thread(SHIM_NUMBER);
}

void URCU(defer_barrier)(void)
{
	quiescence_urcu_defer_barrier(SHIM_NUMBER);
}

void URCU(defer_barrier_thread)(void)
{
	quiescence_urcu_defer_barrier_thread(SHIM_NUMBER);
}

void URCU(defer_exit)(void)
{
	quiescence_urcu_defer_exit(SHIM_NUMBER);
}

/*
 * ---- The flavour as a structure ----
 */

#if !defined(SHIM_QSBR)
/* What only QSBR has. */
static void nothing(void)
{
}
#endif

_Static_assert(sizeof(struct rcu_flavor_struct) == 128, "of 0.14 and 0.15");

static const struct rcu_flavor_struct whole __asm__("shim_flavor") __attribute__((used)) = {
	.read_lock = read_lock,
	.read_unlock = read_unlock,
	.read_ongoing = URCU(read_ongoing),
#if defined(SHIM_QSBR)
	.read_quiescent_state = URCU(quiescent_state),
	.thread_offline = URCU(thread_offline),
	.thread_online = URCU(thread_online),
#else
	.read_quiescent_state = nothing,
	.thread_offline = nothing,
	.thread_online = nothing,
#endif
	.update_call_rcu = URCU(call_rcu),
	.update_synchronize_rcu = URCU(synchronize_rcu),
	.update_defer_rcu = URCU(defer_rcu),
	.register_thread = URCU(register_thread),
#if defined(SHIM_BP)
	.unregister_thread = nothing,
#else
	.unregister_thread = URCU(unregister_thread),
#endif
	.barrier = URCU(barrier),
	.register_rculfhash_atfork = URCU(register_rculfhash_atfork),
	.unregister_rculfhash_atfork = URCU(unregister_rculfhash_atfork),
	.update_start_poll_synchronize_rcu = URCU(start_poll_synchronize_rcu),
	.update_poll_state_synchronize_rcu = URCU(poll_state_synchronize_rcu),
};

/*
 * The same under its name, with the size that programs of 0.13 know: of a library that says more
 * the dynamic linker complains, since they have copied so much into themselves. Into copies that
 * are bigger the rest is written by hand.
 *
 * With SHIM_LINK_TIME this is the library that the linker is given, and no program runs on: it says
 * how big the copies of programs are to be that are linked now.
 */
#if defined(SHIM_LINK_TIME)
# define SHIM_FLAVOR_SIZE "128"
#else
# define SHIM_FLAVOR_SIZE "112"
#endif

__asm__(".globl " LABEL(flavor) "\n\t"
	".type " LABEL(flavor) ", %object\n\t"
	".set " LABEL(flavor) ", shim_flavor\n\t"
	".size " LABEL(flavor) ", " SHIM_FLAVOR_SIZE);

extern const struct rcu_flavor_struct URCU(flavor);

static void complete_copy(void)
{
	quiescence_urcu_complete_flavor(SHIM_NUMBER, (void *)&URCU(flavor), &whole);
}
