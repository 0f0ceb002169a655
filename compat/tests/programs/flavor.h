/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Which flavour a program is compiled for, by -DFLAVOR_MEMB and the like: the generic names (rcu_read_lock ...) are
 * that flavour's. What differs between flavours for a test's author is said here, once: in QSBR a registered thread
 * is inside a section wherever it is online.
 */
#ifndef PROGRAMS_FLAVOR_H
#define PROGRAMS_FLAVOR_H

#include "check.h"

#if defined(FLAVOR_MEMB)
#define RCU_MEMBARRIER
#include <urcu.h>
#define FLAVOR_PREFIX urcu_memb
#elif defined(FLAVOR_MB)
#define RCU_MB
#include <urcu.h>
#define FLAVOR_PREFIX urcu_mb
#elif defined(FLAVOR_SIGNAL)
#define RCU_SIGNAL
#include <urcu.h>
#define FLAVOR_PREFIX urcu_signal
#elif defined(FLAVOR_QSBR)
#include <urcu-qsbr.h>
#define FLAVOR_PREFIX urcu_qsbr
#elif defined(FLAVOR_BP)
#include <urcu-bp.h>
#define FLAVOR_PREFIX urcu_bp
#else
#error "compile with -DFLAVOR_MEMB, _MB, _SIGNAL, _QSBR or _BP"
#endif

#define FLAVOR_JOINED(prefix, name) prefix##_##name
#define FLAVOR_JOIN(prefix, name) FLAVOR_JOINED(prefix, name)
#define FLAVOR_SYMBOL(name) FLAVOR_JOIN(FLAVOR_PREFIX, name)

/* Preprocessor's truth, for what a flavour has and others have not. */
#if defined(FLAVOR_QSBR)
#define IS_QSBR 1
#else
#define IS_QSBR 0
#endif
#if defined(FLAVOR_BP)
#define IS_BP 1
#else
#define IS_BP 0
#endif

/* A section that ends for every flavour: QSBR's ends with the quiescent state. */
static inline void section_begin(void)
{
	rcu_read_lock();
}

static inline void section_end(void)
{
	rcu_read_unlock();
	rcu_quiescent_state();
}

/* Where a registered thread waits for others, it must not hold up their grace periods. */
static inline void idle_begin(void)
{
	rcu_thread_offline();
}

static inline void idle_end(void)
{
	rcu_thread_online();
}

/* A case whose thread is registered while it lasts. */
#define READER_CASE(name)								\
	static void name##_as_a_reader(void);						\
	CASE(name)									\
	{										\
		rcu_register_thread();							\
		name##_as_a_reader();							\
		rcu_unregister_thread();						\
	}										\
	static void name##_as_a_reader(void)

struct registered {
	void (*run)(void *argument);
	void *argument;
};

static void *registered_run(void *argument)
{
	struct registered thread = *(struct registered *)argument;

	free(argument);
	rcu_register_thread();
	thread.run(thread.argument);
	rcu_unregister_thread();
	return NULL;
}

/* A thread that is registered while it calls `run`. */
static UNUSED pthread_t reader_start(void (*run)(void *), void *argument)
{
	struct registered *thread = (struct registered *)malloc(sizeof(*thread));

	CHECK(thread != NULL);
	thread->run = run;
	thread->argument = argument;
	return thread_start(registered_run, thread);
}

/* A reader who stays inside one section from `inside` until `leave` is set; `done` must not be set meanwhile. */
struct held_section {
	int depth;		/* how deep the section is nested; 0 counts as 1 */
	int inside;
	int leave;
	int *done;
	int left;		/* set just before the section ends */
	pthread_t thread;
};

static UNUSED void held_section_run(void *argument)
{
	struct held_section *held = (struct held_section *)argument;
	int depth = held->depth ? held->depth : 1;

	for (int i = 0; i < depth; i++)
		rcu_read_lock();
	for (int i = 0; i < depth - 1; i++)
		rcu_read_unlock();
	CHECK(rcu_read_ongoing());
	flag_set(&held->inside);
	flag_await(&held->leave);
	if (held->done)
		CHECK(!flag_is_set(held->done));
	flag_set(&held->left);
	section_end();
}

static UNUSED void held_section_start(struct held_section *held)
{
	held->thread = reader_start(held_section_run, held);
	flag_await(&held->inside);
}

static UNUSED void held_section_end(struct held_section *held)
{
	flag_set(&held->leave);
	thread_end(held->thread);
}

/* A thread with one grace period to wait for. Not registered: anybody may synchronize. */
struct updater {
	pid_t tid;
	int done;
	pthread_t thread;
};

static UNUSED void *updater_run(void *argument)
{
	struct updater *updater = (struct updater *)argument;

	__atomic_store_n(&updater->tid, thread_id(), __ATOMIC_SEQ_CST);
	synchronize_rcu();
	flag_set(&updater->done);
	return NULL;
}

/* Comes back when the updater waits for somebody, or is done already. */
static UNUSED void updater_start(struct updater *updater)
{
	updater->thread = thread_start(updater_run, updater);
	await_asleep(&updater->tid, &updater->done);
}

#endif
