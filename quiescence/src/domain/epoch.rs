//! Tagged atomic pointers, and the guards under which they are read: the interface of
//! `crossbeam-epoch`, for authors of concurrent structures. Requires the feature `epoch`, which is
//! off by default.
//!
//! A structure links its nodes by [`Atomic`] pointers. A thread [pins](pin) itself, loads
//! [`Shared`] pointers under the [`Guard`], exchanges them, and [defers](Guard::defer_destroy) the
//! destruction of unlinked nodes. The tag in a pointer's low bits often marks a node that is about
//! to be unlinked.
//!
//! A pinned thread is in a read-side critical section. [`pin`] and the [default
//! collector](default_collector) use the [global domain](crate::Domain::global); every other
//! [`Collector`] has a domain of its own.
//!
//! ```
//! use quiescence::epoch::{self, Atomic, Owned};
//! use std::sync::atomic::Ordering::{AcqRel, Acquire};
//!
//! let head = Atomic::new(String::from("old"));
//! let guard = epoch::pin();
//! let old = head.swap(Owned::new(String::from("new")), AcqRel, &guard);
//! // SAFETY: it was in `head` until now, and the guard has lasted since before that.
//! assert_eq!(unsafe { old.deref() }, "old");
//! // SAFETY: no thread can load it any more.
//! unsafe { guard.defer_destroy(old) };
//! let new = head.load(Acquire, &guard);
//! // SAFETY: published by the swap above; it is deferred nowhere.
//! assert_eq!(unsafe { new.deref() }, "new");
//! # // SAFETY: no other thread knows of it.
//! # unsafe { drop(new.into_owned()) };
//! ```
//!
//! # Memory
//! Deferred work counts against the domain's limit ([`Tuning`](crate::tuning::Tuning)). A function
//! counts as one object with the bytes of its closure; an object of
//! [`defer_destroy`](Guard::defer_destroy) counts with the bytes of the allocation that the pointer
//! points to, but not with what that owns.
//!
//! A pinned thread waits for nothing. **Once the limit is reached, each thread may exceed it by
//! what it defers until it is next unpinned.** When the thread's outermost guard is dropped, it
//! waits for a grace period, and runs what it has deferred. It does so in no nested guard, in no
//! deferred function, and not during a panic. If no thread stays pinned for long, the excess is
//! small. If one does, the others wait for it when they drop their own guards, and a [stall
//! report](crate::report::set_stall_hook) names it.
//!
//! So a pinned thread must not wait for another thread that defers, by joining it for example. With
//! `crossbeam-epoch` that makes memory grow; here both threads deadlock once the limit is reached.
//!
//! # Who runs deferred functions
//! The thread that deferred them, when it drops a guard or defers again; the library's worker
//! thread; and threads in [`Guard::flush`] or [`barrier`](crate::barrier). So a deferred function
//! must not take a lock that is held by a thread which drops a guard, as with `crossbeam-epoch`.
//!
//! When the last handle to a collector with a domain of its own is dropped, everything deferred in
//! it runs before the drop returns. The drop waits for any other sections of that domain. But if it
//! happens in a pinned thread or in a deferred function, it does not wait, and the rest runs soon
//! afterwards.
//!
//! # Differences from `crossbeam-epoch`
//! - Pinning takes no fence instruction if the kernel has `membarrier(2)`.
//! - A thread is registered with a collector once, and has one word in it: the guards of a handle
//!   share a section, and the sections of all handles nest. [`Guard::repin`] has an effect if its
//!   guard is the thread's only one in the domain.
//! - No epoch counter has to be advanced by two [flushes](Guard::flush). If the thread is the only
//!   one registered, one flush runs everything deferred when its guard is dropped. If other threads
//!   are registered, it starts a grace period, provided that is worth its cost.
//! - The default collector is the global domain. Sections begun with [`crate::read`] also pin the
//!   thread, and [`is_pinned`] reports them.
//! - The crate's features `loom` and `nightly` have no effect in its facade.
//!
//! # Source
//! The interface is that of `crossbeam-epoch` (the Crossbeam developers), version 0.9. The crate of
//! the same name in `facades/` provides it to programs that depend on the original.

mod atomic;
mod collector;
mod deferred;
mod due;
mod guard;
mod owned;
mod pointable;
mod shared;

#[expect(deprecated)]
pub use atomic::{Atomic, CompareAndSetError, CompareAndSetOrdering, CompareExchangeError};
pub use collector::{Collector, LocalHandle, default_collector, is_pinned, pin};
pub use guard::{Guard, unprotected};
pub use owned::Owned;
pub use pointable::Pointable;
pub use shared::{Pointer, Shared};

use crate::reclaim::weigh::{Weigh, owns};

owns! {
    /// A handle of a shared domain.
    [] Collector, false;
    [T: ?Sized + Pointable] Atomic<T>, false;
    [T: ?Sized + Pointable + Weigh] Owned<T>, true, |owner| (**owner).weight();
}
