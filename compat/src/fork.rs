//! `fork`: the child finds registrations, records and workers whole.
//!
//! quiescence's own handlers see to its domains: no lock is held by a thread that the child does
//! not have, its readers are gone, and the forking thread stays registered. Ours come around those.
//! They block signals meanwhile, since a handler may read for the first time and register its
//! thread, for which it would wait for locks that its own thread holds; and they hold what this
//! crate locks. So nothing is left for `urcu_bp_before_fork` and its kin but what they are
//! documented for besides: no signal handler runs between the two calls.

use std::cell::{Cell, UnsafeCell};
use std::ffi::c_uint;
use std::sync::MutexGuard;

use crate::call_rcu::forks as workers;
use crate::fatal::fatal;
use crate::flavor::{self, Flavor};
use crate::reader::{self, Pool};
use crate::signals::{self, Before};
use crate::{defer, hazard};

/// What is held while the memory is copied.
struct Held {
    pool: MutexGuard<'static, Pool>,
    workers: workers::Held,
    signals: Before,
}

thread_local! {
    /// Whether the thread is in the midst of a fork, and holds that.
    static HOLDS: Cell<bool> = const { Cell::new(false) };
}

/// Whether the calling thread is in the midst of a fork, and holds what this crate locks: handlers
/// that a program has installed before this library was initialised are called there.
pub(crate) fn holds() -> bool {
    HOLDS.get()
}

/// The flavour of a call by a program's hook. None in the midst of a fork: there is nothing left to
/// do that could still be done.
pub(crate) fn called_by_hook(flavor: c_uint) -> Option<Flavor> {
    (!holds()).then(|| Flavor::called(flavor))
}

/// Where the forking thread keeps it between the two calls.
struct Place(UnsafeCell<Option<Held>>);

// SAFETY: touched by a thread that holds what is in it: one at a time.
unsafe impl Sync for Place {}

static HELD: Place = Place(UnsafeCell::new(None));

/// Has every fork find us. To be called when quiescence's handlers are there: the last to come is
/// the first to prepare, and the last to be called afterwards.
pub(crate) fn install() {
    // SAFETY: three functions of the right type that live for ever.
    let error = unsafe { libc::pthread_atfork(Some(prepare), Some(parent), Some(child)) };
    if error != 0 {
        fatal(format_args!("pthread_atfork fails with error {error}: out of memory"));
    }
}

extern "C" fn prepare() {
    flavor::finish_beginning();
    let signals = signals::block();
    //~ compat-fork-mask
    // While the pool is locked the thread cannot register: older handlers may call anything.
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
    signals.restore();
}

extern "C" fn child() {
    let Some(Held { mut pool, mut workers, signals }) = take() else { return };
    pool.after_fork();
    defer::after_fork();
    hazard::after_fork();
    workers.after_fork();
    drop((pool, workers));
    signals.restore();
}

thread_local! {
    /// What the thread blocked before the outermost `before_fork`, and how many there are.
    static BEFORE: Cell<(u32, Option<Before>)> = const { Cell::new((0, None)) };
}

exported! {
    /// `urcu_bp_before_fork`.
    fn quiescence_urcu_before_fork(flavor: c_uint) {
        if called_by_hook(flavor).is_none() {
            return;
        }
        let (depth, outer) = BEFORE.get();
        let before = outer.unwrap_or_else(signals::block);
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
    before.restore();
}
