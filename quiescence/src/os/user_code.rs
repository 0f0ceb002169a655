//! The places where the library runs user code: each has a name, [`Site`], and goes through [`run`]
//! or [`caught`].
//!
//! This covers functions, callbacks and wakers that users pass in, values that containers drop, and
//! the traits of their keys and counted pointers (`Hash`, `Eq`, `Clone`, `Deref`). It does not
//! cover iterators that users pass in, and what a function drops when it returns or unwinds.
//!
//! **Invariant [UC-1]: no lock of the library is held there**, except locks that users hold
//! knowingly (a list's updater, a writer of a sequence lock or latch), and the thread's table is
//! not borrowed ([`Borrow`]). A build with debug assertions checks this at each call, and once for
//! the callbacks that run under one catch, between which the queue takes no lock and borrows
//! nothing. It does not check calls by readers: a reader may be in a signal handler.
//!
//! **Invariant [UC-2]: values computed before are not used afterwards**, unless user code cannot
//! change them. User code may begin and end sections, retire, wait for a grace period or a barrier,
//! end a domain or a container, and fork.
//!
//! **Invariant [UC-3]: if user code unwinds, everything is consistent.**
//!
//! `tests/user_code.rs` has a row for each place: what is held there, what is used afterwards, and
//! what an unwinding leaves. At each place the test's user code checks from which place it was
//! called, and does everything that user code may do. `tests/house/tidy.rs` of xtask searches for
//! other calls.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A place where user code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Site {
    /// A callback of a domain, or the drop of what was retired.
    Callback,
    /// A deferred function, or the drop of what was retired, that runs at once: no wait is needed.
    OnTheSpot,
    /// The function of a callback head, in C.
    Head,
    /// The weight of a value, by its `Weigh` or a function in place of that.
    Weigh,
    /// A waker is cloned.
    WakerClone,
    /// A waker is called.
    Wake,
    /// A waker is dropped.
    WakerDrop,
    /// A subscriber of `tracing`.
    Subscriber,
    /// The stall hook.
    StallHook,
    /// A closure that computes the new value of a cell, of a sequence lock, or of an entry.
    Update,
    /// A closure that borrows what a section protects, and returns a part of it.
    Project,
    /// A closure during which the thread is offline, or in some section.
    Scope,
    /// A closure that makes the value of a new entry, or for a CPU.
    Make,
    /// A closure that chooses among entries.
    Choose,
    /// A closure that attends to a callback queue.
    Attend,
    /// The function that a `BigRef` ends with.
    Release,
    /// The test whether a node of a hash table is the one that is searched for.
    Equal,
    /// `Hash`, `Eq` or `Clone` of a map's key, or its `BuildHasher`.
    Key,
    /// `Clone` or `Deref` of a counted pointer, or of a pointer to a cell.
    Pointer,
    /// The drop of a value that was refused, taken out, or dropped with its container.
    Drop,
    /// A user's allocator, of a hash table.
    Allocate,
}

#[cfg(all(debug_assertions, not(loom)))]
impl Site {
    /// Whether readers run user code here too.
    fn is_of_readers(self) -> bool {
        matches!(self, Self::Project | Self::Scope | Self::Equal | Self::Key | Self::Pointer)
    }
}

/// Marks a borrow during which user code must not run, since it may need to borrow the same. Empty
/// in a build without debug assertions.
pub(crate) use imp::Borrow;

/// Runs user code. If it panics, the panic unwinds through here.
#[inline(always)]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn run<R>(site: Site, f: impl FnOnce() -> R) -> R {
    let _there = imp::There::at(site);
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

#[cfg(all(debug_assertions, not(loom)))]
mod imp {
    use std::cell::Cell;

    use super::Site;
    use crate::os::lock_rank;

    thread_local! {
        static HERE: Cell<Option<Site>> = const { Cell::new(None) };
        static BORROWS: Cell<u32> = const { Cell::new(0) };
    }

    /// A borrow of the thread's table.
    #[derive(Debug)]
    pub(crate) struct Borrow(());

    impl Borrow {
        pub(crate) fn begin() -> Self {
            BORROWS.set(BORROWS.get() + 1);
            Self(())
        }
    }

    impl Drop for Borrow {
        fn drop(&mut self) {
            BORROWS.set(BORROWS.get() - 1);
        }
    }

    /// The thread is in user code while this exists; restores the place before it on drop.
    #[derive(Debug)]
    pub(super) struct There(Option<Site>);

    impl There {
        #[track_caller]
        pub(super) fn at(site: Site) -> Self {
            // Readers may be in a signal handler, which may have interrupted a lock or a borrow.
            if !site.is_of_readers() {
                lock_rank::assert_none_held("user code is called");
                assert_eq!(BORROWS.get(), 0, "user code is called under a borrow");
            }
            Self(HERE.replace(Some(site)))
        }
    }

    impl Drop for There {
        fn drop(&mut self) {
            HERE.set(self.0);
        }
    }

    pub(super) fn here() -> Option<Site> {
        HERE.get()
    }
}

#[cfg(not(all(debug_assertions, not(loom))))]
mod imp {
    use super::Site;

    #[derive(Debug)]
    pub(crate) struct Borrow;

    impl Borrow {
        #[inline(always)]
        pub(crate) fn begin() -> Self {
            Self
        }
    }

    #[derive(Debug)]
    pub(super) struct There;

    impl There {
        #[inline(always)]
        pub(super) fn at(_site: Site) -> Self {
            Self
        }
    }

    pub(super) fn here() -> Option<Site> {
        None
    }
}

/// The place at which this thread entered user code, in a build with debug assertions; `None` in
/// others. For tests, whose user code calls it.
pub fn here() -> Option<Site> {
    imp::here()
}
