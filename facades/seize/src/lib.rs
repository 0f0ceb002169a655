//! The interface of `seize` 0.5 on [`quiescence`]: what a program gets that asks for the original
//! and has one line more in its `Cargo.toml`.
//!
//! A [`LocalGuard`] is a read-side critical section of a domain that the collector has for itself.
//! An [`OwnedGuard`], which may go to other threads, is a section of a sleepable domain that the
//! collector makes for the first of them.
//!
//! **What is retired stays with the collector, and is reclaimed by threads in calls on it**: when
//! an outermost guard ends, in [`Guard::refresh`], [`Collector::retire`] and
//! [`Collector::reclaim_all`], and when the collector is dropped. Not by a worker thread: the
//! interface asks neither `Send` nor `'static` of what is retired, and a map of values that stay on
//! one thread is safe code with it.
//!
//! # Memory
//! What waits is held to the limit that domains begin with (`QUIESCENCE_LIMIT_BYTES`,
//! `QUIESCENCE_LIMIT_OBJECTS`): **a thread whose outermost guard ends while more waits stays there
//! until there is room, but for 10 ms at most**, since the guard that is in the way may be of a
//! thread that waits for this one. So it is the rate that is bounded there, to a batch for each
//! thread and 10 ms. An object counts for its own bytes.
//!
//! # What differs from `seize`
//! - A batch is a thread's, or that of a few threads whose ids have the same remainder; by default
//!   it is larger.
//! - A guard of another collector in the same thread is no obstacle, and one of the same collector
//!   is, as there.
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
