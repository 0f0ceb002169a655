/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Publication for callers that do not inline it: every flavour's library has these five functions. -bp has four of them
 * a second time, under names of its own.
 */

void *rcu_dereference_sym(void *p);
void *rcu_dereference_sym2(void **p);
void *rcu_set_pointer_sym(void **p, void *v);
void *rcu_xchg_pointer_sym(void **p, void *v);
void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *_new);

/*
 * The caller has loaded p already, plainly: its compiler may have broken the dependency between that load and those of
 * what p points to. An acquire fence puts them in this order; on x86 they are.
 */
void *rcu_dereference_sym(void *p)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	return p;
}

/* The load is here. Acquire: pairs with the release in rcu_set_pointer_sym(). */
void *rcu_dereference_sym2(void **p)
{
	return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

void *rcu_set_pointer_sym(void **p, void *v)
{
	/* Release: what v points to has been written when a reader finds v. */
	__atomic_store_n(p, v, __ATOMIC_RELEASE);
	return v;
}

/* Read-modify-writes are documented as full fences, on either side. */
void *rcu_xchg_pointer_sym(void **p, void *v)
{
	void *old;

#if !defined(__x86_64__)
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	old = __atomic_exchange_n(p, v, __ATOMIC_SEQ_CST);
#if !defined(__x86_64__)
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	return old;
}

void *rcu_cmpxchg_pointer_sym(void **p, void *old, void *_new)
{
	void *found = old;

#if !defined(__x86_64__)
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	__atomic_compare_exchange_n(p, &found, _new, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
#if !defined(__x86_64__)
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
#endif
	return found;
}

#if defined(SHIM_BP)
extern __typeof__(rcu_dereference_sym) urcu_bp_dereference_sym __attribute__((alias("rcu_dereference_sym")));
extern __typeof__(rcu_set_pointer_sym) urcu_bp_set_pointer_sym __attribute__((alias("rcu_set_pointer_sym")));
extern __typeof__(rcu_xchg_pointer_sym) urcu_bp_xchg_pointer_sym __attribute__((alias("rcu_xchg_pointer_sym")));
extern __typeof__(rcu_cmpxchg_pointer_sym) urcu_bp_cmpxchg_pointer_sym
	__attribute__((alias("rcu_cmpxchg_pointer_sym")));
#endif
