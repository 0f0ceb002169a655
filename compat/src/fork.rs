//! `fork`: the child finds registrations, records and workers consistent.
//!
//! quiescence's own handlers take care of its domains: no lock is held by a thread that the child
//! does not have, the readers of such threads are gone, and the forking thread stays registered.
//! This crate's handlers run around those. They block signals, since a signal handler may read for
//! the first time and so register its thread: it would wait for locks that its own thread holds.
//! They also hold this crate's locks. So `urcu_bp_before_fork` and its kin have only one thing left
//! to do that is documented: no signal handler runs between the two calls.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_uint;
use std::sync::MutexGuard;

use quiescence::liburcu_readers::system::{block, restore};

use crate::call_rcu::forks as workers;
use crate::fatal::fatal;
use crate::flavor::{self, Flavor};
use crate::reader::{self, Pool};
use crate::{defer, hazard};

/// The locks, and the signal mask to restore, while the memory is copied.
struct Held {
    pool: MutexGuard<'static, Pool>,
    workers: workers::Held,
    signals: libc::sigset_t,
}

thread_local! {
    /// Whether the thread is forking, and has something in `HELD`.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is forking, and holds this crate's locks. Handlers that the program
/// installed before this library was initialised run at that time.
pub(crate) fn holds() -> bool {
    HOLDS.get()
}

/// The flavour of a call by a program's hook. `None` during a fork: it is too late for the hook to
/// do anything.
pub(crate) fn called_by_hook(flavor: c_uint) -> Option<Flavor> {
    (!holds()).then(|| Flavor::called(flavor))
}

/// Where the forking thread keeps `Held` between the two handlers.
struct Place(UnsafeCell<Option<Held>>);

// SAFETY: only a thread that holds these locks accesses it: one at a time.
unsafe impl Sync for Place {}

static HELD: Place = Place(UnsafeCell::new(None));

/// Installs the handlers. quiescence's must be installed before: the handlers that are installed
/// last are the first to be called before a fork, and the last after it.
pub(crate) fn install() {
    // SAFETY: three functions of the right type that live for ever.
    let error = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    if error != 0 {
        fatal(format_args!("pthread_atfork fails with error {error}: out of memory"));
    }
}

extern "C" fn prepare() {
    flavor::finish_beginning();
    let signals = block();
    //~ compat-fork-mask
    // While the pool is locked the thread cannot register, and handlers that were installed before
    // ours may call anything.
    reader::register_ahead();
    let workers = workers::hold();
    let held = Held { workers, pool: reader::pool(), signals };
    // SAFETY: the locks are ours, see `Place`.
    unsafe { *HELD.0.get() = Some(held) };
    HOLDS.set(true);
}

fn take() -> Option<Held> {
    HOLDS.set(false);
    // SAFETY: as in `prepare`.
    unsafe { (*HELD.0.get()).take() }
}

extern "C" fn parent() {
    let Some(Held { pool, workers, signals }) = take() else { return };
    drop((pool, workers));
    restore(&signals);
}

extern "C" fn child() {
    let Some(Held { mut pool, mut workers, signals }) = take() else { return };
    pool.after_fork();
    defer::after_fork();
    hazard::after_fork();
    workers.after_fork();
    drop((pool, workers));
    restore(&signals);
}

thread_local! {
    /// How many calls of `before_fork` have not been ended, and the signal mask before the
    /// outermost one.
    static BEFORE: Cell<(u32, Option<libc::sigset_t>)> = const { Cell::new((0, None)) };
}

exported! {
    /// `urcu_bp_before_fork`.
    fn quiescence_urcu_before_fork(flavor: c_uint) {
        if called_by_hook(flavor).is_none() {
            return;
        }
        let (depth, outer) = BEFORE.get();
        let before = outer.unwrap_or_else(block);
        BEFORE.set((depth + 1, Some(before)));
    }

    /// `urcu_bp_after_fork_parent`.
    fn quiescence_urcu_after_fork_parent(flavor: c_uint) { after_fork(flavor, "parent") }

    /// `urcu_bp_after_fork_child`.
    fn quiescence_urcu_after_fork_child(flavor: c_uint) { after_fork(flavor, "child") }
}

fn after_fork(flavor: c_uint, side: &str) {
    let Some(flavor) = called_by_hook(flavor) else { return };
    let (depth, before) = BEFORE.get();
    let Some(before) = before else {
        fatal(format_args!(
            "{flavor}_after_fork_{side}() without {flavor}_before_fork() on the same thread; call \
             the one before fork() and the other after it"
        ));
    };
    if depth > 1 {
        return BEFORE.set((depth - 1, Some(before)));
    }
    BEFORE.set((0, None));
    restore(&before);
}
