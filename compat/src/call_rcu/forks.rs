//! `fork`: the hooks that programs install, and what happens without them.
//!
//! Without hooks a child inherits all waiting callbacks except those that were being run, up to a
//! few hundred for each worker. Its workers' threads start again with the next callback that is
//! queued, or with a barrier. With hooks the workers are paused during the fork, so nothing is
//! lost, and the child has only the default worker, as liburcu documents.

use std::cell::Cell;
use std::ffi::{c_uint, c_void};
use std::ptr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::workers::{self, Workers};
use super::{choose, cpus};
use crate::errno_guard::with_errno;
use crate::fatal::fatal;
use crate::flavor::{FLAVORS, Flavor};
use crate::fork::called_by_hook;

/// A function of a [`struct urcu_atfork`](Atfork).
type Hook = unsafe extern "C" fn(*mut c_void);

/// `struct urcu_atfork`.
#[repr(C)]
pub(crate) struct Atfork {
    pub(crate) before: Hook,
    pub(crate) after_parent: Hook,
    pub(crate) after_child: Hook,
    pub(crate) private: *mut c_void,
}

// SAFETY: any thread may call the functions with `private`.
unsafe impl Sync for Atfork {}

/// The hooks that a hash table library has registered, and how often.
struct Registered {
    atfork: *const Atfork,
    times: usize,
}

// SAFETY: a pointer to a structure that lives as long as it is registered.
unsafe impl Send for Registered {}

static REGISTERED: [Mutex<Option<Registered>>; FLAVORS] = [const { Mutex::new(None) }; FLAVORS];

fn registered(flavor: Flavor) -> MutexGuard<'static, Option<Registered>> {
    REGISTERED[flavor.index()].lock().unwrap_or_else(PoisonError::into_inner)
}

/// The pauses of a flavour, by one thread, that have not ended: how many, and the hooks that the
/// first of them has called. Those within it call the same, which stay registered meanwhile.
type Pauses = (u32, Option<*const Atfork>);

thread_local! {
    /// The calling thread's. It has no destructor, as a thread may fork until its very end.
    static PAUSES: [Cell<Pauses>; FLAVORS] = const { [const { Cell::new((0, None)) }; FLAVORS] };
}

fn pauses(flavor: Flavor) -> Pauses {
    PAUSES.with(|pauses| pauses[flavor.index()].get())
}

fn set_pauses(flavor: Flavor, now: Pauses) {
    PAUSES.with(|pauses| pauses[flavor.index()].set(now));
}

/// The locks that are held across any fork.
pub(crate) struct Held {
    workers: MutexGuard<'static, Workers>,
    _registered: [MutexGuard<'static, Option<Registered>>; FLAVORS],
}

/// Before a `fork`.
pub(crate) fn hold() -> Held {
    Held { workers: workers::lock(), _registered: Flavor::ALL.map(registered) }
}

impl Held {
    /// In the child: workers have no threads. Only the forking thread's own pauses are left, which
    /// it will end.
    pub(crate) fn after_fork(&mut self) {
        self.workers.after_fork(Flavor::ALL.map(|flavor| pauses(flavor).0));
    }
}

exported! {
    /// `call_rcu_before_fork`.
    fn quiescence_urcu_call_rcu_before_fork(flavor: c_uint) {
        let Some(flavor) = called_by_hook(flavor) else { return };
        let atfork = with_errno(|| {
            let atfork = match pauses(flavor) {
                (0, _) => registered(flavor).as_ref().map(|registered| registered.atfork),
                (_, atfork) => atfork,
            };
            call(atfork, |atfork| atfork.before);
            workers::pause(flavor);
            atfork
        });
        // Only now: a child that a signal handler forked meanwhile must not pause anything twice.
        set_pauses(flavor, (pauses(flavor).0 + 1, atfork));
    }

    /// `call_rcu_after_fork_parent`.
    fn quiescence_urcu_call_rcu_after_fork_parent(flavor: c_uint) {
        let Some(flavor) = called_by_hook(flavor) else { return };
        resume(flavor, "parent", |atfork| atfork.after_parent);
    }

    /// `call_rcu_after_fork_child`: frees all workers except the default one, which takes over
    /// their callbacks.
    fn quiescence_urcu_call_rcu_after_fork_child(flavor: c_uint) {
        let Some(flavor) = called_by_hook(flavor) else { return };
        resume(flavor, "child", |atfork| atfork.after_child);
        choose(flavor, ptr::null());
        with_errno(|| {
            cpus::take_all(flavor);
            workers::keep_default_only(flavor);
        });
    }
}

/// Calls one of the hooks that a hash table has registered, if any.
fn call(atfork: Option<*const Atfork>, which: impl FnOnce(&Atfork) -> Hook) {
    let Some(atfork) = atfork else { return };
    // SAFETY: valid while it is registered.
    let atfork = unsafe { &*atfork };
    // SAFETY: a registered hook, called with its own `private`.
    unsafe { which(atfork)(atfork.private) };
}

/// Ends what `before_fork` began on this thread.
fn resume(flavor: Flavor, side: &str, hook: impl FnOnce(&Atfork) -> Hook) {
    let (paused, atfork) = pauses(flavor);
    let Some(left) = paused.checked_sub(1) else {
        fatal(format_args!(
            "{flavor}_call_rcu_after_fork_{side}() without {flavor}_call_rcu_before_fork() on the \
             same thread; call the one before fork() and the other after it"
        ));
    };
    set_pauses(flavor, (left, atfork));
    with_errno(|| {
        workers::resume(flavor);
        call(atfork, hook);
    });
}

of_flavors! {
    /// `urcu_register_rculfhash_atfork`: the same hooks may be registered more than once. While
    /// they are, other hooks are ignored, here and below.
    fn quiescence_urcu_register_rculfhash_atfork(flavor, atfork: *const Atfork) {
        with_errno(|| match &mut *registered(flavor) {
            Some(known) => known.times += usize::from(ptr::eq(known.atfork, atfork)),
            none => *none = Some(Registered { atfork, times: 1 }),
        });
    }

    /// `urcu_unregister_rculfhash_atfork`.
    fn quiescence_urcu_unregister_rculfhash_atfork(flavor, atfork: *const Atfork) {
        let mut registered = with_errno(|| registered(flavor));
        registered.take_if(|known| {
            known.times -= usize::from(ptr::eq(known.atfork, atfork));
            known.times == 0
        });
    }
}
