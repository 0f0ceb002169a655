//! Where the library runs code of its user's: every such place has a name, [`Site`], and goes
//! through [`run`] or [`caught`].
//!
//! What users hand over as functions, callbacks and wakers goes through here, what containers drop
//! for them, and the traits of their keys and counted pointers (`Hash`, `Eq`, `Clone`, `Deref`).
//! Not so the iterators that they hand over, and what a function drops where it returns or unwinds.
//!
//! **Invariant [U-1]: no lock of the library's is held there** but those that users hold knowingly
//! (an updater's of a list, a writer's of a sequence lock or latch), and the thread's table is not
//! borrowed ([`Borrow`]). A build with debug assertions checks it at each call that no reader
//! makes: a reader may be in a signal handler.
//!
//! **Invariant [U-2]: what was computed before is not used afterwards**, unless nothing that user
//! code may do changes it. It may begin and end sections, retire, wait for a grace period or a
//! barrier, end a domain or a container, and fork.
//!
//! **Invariant [U-3]: if it unwinds, what it leaves is whole.**
//!
//! `tests/user_code.rs` has a row for each place: what is held there, what is used afterwards, and
//! what an unwinding leaves. It looks for calls outside of these places, asks user code at each of
//! them by which it was called, and has it do there what user code may do.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// A place where user code runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(loom, allow(dead_code, reason = "loom runs some rooms only"))]
pub enum Site {
    /// A callback of a domain, or the drop of what was retired.
    Callback,
    /// A deferred function, or the drop of what was retired, where nothing has to be waited for.
    OnTheSpot,
    /// The function of a callback head, in C.
    Head,
    /// What a value owns, by its `Weigh` or a function in the place of that.
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
    /// A closure that is lent what a section protects, and gives a part of it.
    Project,
    /// A closure during which the thread is offline, or in a section of a kind.
    Scope,
    /// A closure that makes the value of a new entry, or of a CPU.
    Make,
    /// A closure that chooses among entries.
    Choose,
    /// A closure that attends to a callback queue.
    Attend,
    /// The function that a `BigRef` ends with.
    Release,
    /// What tells whether a node of a hash table is the one that is sought.
    Equal,
    /// `Hash`, `Eq` or `Clone` of a map's key, or its `BuildHasher`.
    Key,
    /// `Clone` or `Deref` of a counted pointer, or of what leads to a cell.
    Pointer,
    /// The drop of a value that was refused, taken out, or ended with its container.
    Drop,
    /// An allocator of the user's, of a hash table.
    Allocate,
}

#[cfg(all(debug_assertions, not(loom)))]
impl Site {
    /// Whether readers come here too.
    fn is_of_readers(self) -> bool {
        matches!(self, Self::Project | Self::Scope | Self::Equal | Self::Key | Self::Pointer)
    }
}

/// A borrow that user code, which may need the same, must not run under. Nothing in a build without
/// debug assertions.
pub(crate) use imp::Borrow;

/// Runs user code. A panic of it unwinds through here.
#[inline(always)]
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn run<R>(site: Site, f: impl FnOnce() -> R) -> R {
    let _there = imp::There::at(site);
    f()
}

/// Runs user code. A panic ends here, reported by the panic hook, and makes the result `false`.
#[cfg_attr(debug_assertions, track_caller)]
pub(crate) fn caught(site: Site, f: impl FnOnce()) -> bool {
    is_whole(|| run(site, f))
}

/// Runs code of the library's, which panics over a fault of the library's only: as [`caught`].
pub(crate) fn is_whole(f: impl FnOnce()) -> bool {
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(()) => true,
        Err(payload) => {
            let drop_payload = || run(Site::Drop, || drop(payload));
            // Its own drop may panic again. The payload of that one is forgotten: some day it has
            // to end.
            if let Err(payload) = catch_unwind(AssertUnwindSafe(drop_payload)) {
                std::mem::forget(payload);
            }
            false
        }
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

    /// A borrow of what the thread knows of itself.
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

    /// The thread is in user code; dropped where it comes back.
    #[derive(Debug)]
    pub(super) struct There(Option<Site>);

    impl There {
        #[track_caller]
        pub(super) fn at(site: Site) -> Self {
            // Readers may be in a signal handler, which has interrupted whatever there is.
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

    #[cfg_attr(loom, allow(dead_code, reason = "loom has no tests outside of the library"))]
    pub(super) fn here() -> Option<Site> {
        None
    }
}

/// The place by which the thread has come into user code, in a build with debug assertions: for
/// tests, whose user code asks it.
#[cfg_attr(loom, allow(dead_code, reason = "loom has no tests outside of the library"))]
pub fn here() -> Option<Site> {
    imp::here()
}
