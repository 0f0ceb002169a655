//! The interface of `seize` 0.5 on [`quiescence`]: a program that asks for the original gets this
//! crate by a line in its `Cargo.toml`.
//!
//! A [`LocalGuard`] is a read-side critical section of the collector's own domain. An
//! [`OwnedGuard`], which may go to other threads, is a section of a sleepable domain, which the
//! collector makes with the first owned guard.
//!
//! **Retired objects stay with the collector, and are reclaimed by threads that call it**: when an
//! outermost guard ends, in [`Guard::refresh`], [`Collector::retire`] and
//! [`Collector::reclaim_all`], and when the collector is dropped. No worker thread reclaims them:
//! the interface requires neither `Send` nor `'static` of retired objects, so safe code can have a
//! map of values that must stay on one thread.
//!
//! # Memory
//! Waiting objects are limited as in a new domain (`QUIESCENCE_LIMIT_BYTES`,
//! `QUIESCENCE_LIMIT_OBJECTS`). **If more objects wait when a thread's outermost guard ends, or an
//! owned guard outside of others, the thread waits for room, for 10 ms at most**: not longer, since
//! the guard that holds them up may belong to a thread that waits for this one. So the rate is
//! bounded: each thread adds at most what it retires under one outermost guard in 10 ms. An object
//! counts with its own bytes.
//!
//! The end of the last owned guard waits for 20 ms at most, while a batch waits and the thread has
//! no other guard: the objects that only owned guards held up are reclaimed before it returns.
//!
//! # What differs from `seize`
//! - A batch belongs to one thread, or to a few threads whose ids have the same remainder. By
//!   default it is larger.
//! - A guard of another collector on the same thread does not delay reclamation; one of the same
//!   collector does, as in seize.
//! - `fast-barrier` has no effect.
//!
//! # Source
//! The interface is seize's (Ibraheem Ahmed), version 0.5.

mod collector;
mod guard;
pub mod reclaim;
mod thread;

pub use collector::Collector;
pub use guard::{Guard, LocalGuard, OwnedGuard};
