//! The places where the library runs user code: each has a name, [`Site`], and goes through [`run`]
//! or [`caught`].
//!
//! This covers functions, callbacks and wakers that users pass in, values that containers drop, and
//! the traits of their keys and counted pointers (`Hash`, `Eq`, `Clone`, `Deref`). It does not
//! cover iterators that users pass in, and what a function drops when it returns or unwinds.
//!
//! **Invariant [UC-1]: no lock of the library is held there**, except locks that users hold
//! knowingly (a list's updater, a writer of a sequence lock or latch), and the thread's table is
//! not borrowed. A build with debug assertions checks this at each call, and once for the callbacks
//! that run under one catch, between which the queue takes no lock and borrows nothing. It does not
//! check calls by readers, which may be in a signal handler, nor by writers of a sequence lock or
//! latch, in which a global allocator may count.
//!
//! **Invariant [UC-2]: values computed before are not used afterwards**, unless user code cannot
//! change them. User code may begin and end sections, retire, wait for a grace period or a barrier,
//! end a domain or a container, and fork.
//!
//! **Invariant [UC-3]: if user code unwinds, everything is consistent.**
//!
//! `tests/user_code` has a row for each place: what is held there, what is used afterwards, and
//! what an unwinding leaves. At each place the test's user code checks from which place it was
//! called, and does everything that user code may do. `tests/house/tidy.rs` searches for other
//! calls.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

mod site;

pub use site::{Site, here};

/// Runs user code. If it panics, the panic unwinds through here.
#[inline(always)]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn run<R>(site: Site, f: impl FnOnce() -> R) -> R {
    let _there = site::enter(site);
    f()
}

/// Runs user code. Catches its panic, which the panic hook has reported. Returns whether it did not
/// panic.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn caught(site: Site, f: impl FnOnce()) -> bool {
    is_whole(|| run(site, f))
}

/// As [`caught`], for code of the library, which panics only if the library has an error.
pub(crate) fn is_whole(f: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(f)).map_err(drop_payload).is_ok()
}

/// Drops what a thread has panicked with.
#[cold]
fn drop_payload(payload: Box<dyn Any + Send>) {
    let drop_payload = || run(Site::Drop, || drop(payload));
    // Its drop may panic, too. The payload of that panic is leaked, so that this ends.
    if let Err(payload) = catch_unwind(AssertUnwindSafe(drop_payload)) {
        std::mem::forget(payload);
    }
}
