//! Atomic pointers with tags, and the guards that they are read under: the interface of
//! `crossbeam-epoch`, for those who write concurrent structures. The feature `epoch`, which is
//! off by default.
//!
//! A structure holds its nodes by [`Atomic`] pointers. A thread [pins](pin) itself, loads
//! [`Shared`] pointers under the [`Guard`], exchanges them, and [defers](Guard::defer_destroy) the
//! end of what it has unlinked. The tag in a pointer's low bits often marks a node that is about to
//! be unlinked.
//!
//! A pinned thread is in a read-side critical section: by [`pin`] and the
//! [default collector](default_collector) in one of the [global domain](crate::Domain::global), by
//! every other [`Collector`] in one of a domain of its own.
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
//! What is deferred counts against the domain's limit ([`Tuning`](crate::tuning::Tuning)): a
//! function as one object, with the bytes of its closure; an object of
//! [`defer_destroy`](Guard::defer_destroy) with the bytes of the allocation that the pointer leads
//! to, and not with what that owns.
//!
//! A pinned thread waits for nothing. **Over the limit is what threads defer, each between two
//! moments at which it is not pinned, from when the limit was reached**: when the thread's
//! outermost guard is dropped the thread waits for a grace period, and runs what it has deferred.
//! It does so in no nested guard, in no deferred function, and not while it panics. Where no thread
//! stays pinned for long, so little goes over the limit; where one does, the others wait for it
//! where they end their own guards, and a [stall report](crate::report::set_stall_hook) names it.
//!
//! So a thread that is pinned must not wait for another thread that defers: to join it, say. With
//! `crossbeam-epoch` that makes memory grow; here it makes both wait, once the limit is reached.
//!
//! # Who runs what is deferred
//! The thread that has deferred it, when it ends a guard or defers something again; the
//! library's worker thread; and threads in [`Guard::flush`] or [`barrier`](crate::barrier). So a
//! deferred function must not want a lock that is held by a thread which drops a guard, as with
//! `crossbeam-epoch`.
//!
//! When the last handle of a collector of its own is gone, all that was deferred in it runs before
//! the drop returns. It waits for any other sections of that domain; but if the
//! drop is itself in a pinned thread or in a deferred function, it runs soon, and the drop waits
//! for nothing.
//!
//! # What differs from `crossbeam-epoch`
//! - To pin takes no fence instruction where the kernel has `membarrier(2)`.
//! - A thread is registered with the collector once, and has one word in it: the guards of all of
//!   its handles nest in each other. [`Guard::repin`] does something where its guard is the only
//!   one of the thread in the domain.
//! - There is no count of epochs that two [flushes](Guard::flush) would have to advance. One of a
//!   thread that is the only one registered runs all that is deferred, when its guard ends; if
//!   other threads are registered it starts a grace period, if that is worth its cost.
//! - The default collector is the global domain. Sections begun with [`crate::read`] pin the thread
//!   as well, and [`is_pinned`] says so.
//! - The features `loom` and `nightly` of the crate have no effect in its facade.
//!
//! # Source
//! The interface is `crossbeam-epoch`'s (the Crossbeam developers), version 0.9, whose crate of the
//! same name in `facades/` gives it to programs that ask for the original.

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
