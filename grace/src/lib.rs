//! What a grace period *is*: the protocol of quiescence as one pure state machine.
//!
//! A *grace period* is a span of time in which every read-side critical section that had begun
//! before it has ended. An updater that unlinks an object, waits for a grace period and only then
//! frees it, never frees an object that a reader still has. This crate decides when such a span
//! begins, what must be done in it, and when it has ended. It does nothing itself: a *driver* asks
//! [`Machine::poll`] for the next [`Action`], carries it out, and reports back with
//! [`Machine::observe`]. The runtime (`quiescence`) and the explorer (`verify/explore`) both drive
//! this code.
//!
//! It touches nothing: no `std`, no allocator, no unsafe code, no clock, no threads, no dependency.
//! Every function is total: whatever is called in whatever state, nothing panics and no invariant
//! breaks.
//!
//! This crate contains what the library runs, and also the kernel's delay functions for SRCU, which
//! are values behind the same trait as the library's own. The engines of kernels, whose CPUs report
//! quiescent states, are in `quiescence-kernel`.
//!
//! Reading order: [`sequence`] (grace periods have numbers, requests have cookies), [`word`] (what
//! a reader stores), [`policy`] (when to scan again), [`machine`], [`segments`] (which callbacks
//! wait for which grace period), [`limit`] (how much may be queued), [`vain`] (who waits at it),
//! [`batch`] (when callbacks are closed, and how many run in one go), [`driver`] and [`worker`]
//! (the other decisions of those two), [`handover`] (when a waiter takes the driver's place),
//! [`srcu`] (counted readers), [`steps`] (the steps that a mutant leaves out).
#![no_std]
#![forbid(unsafe_code)]

pub mod batch;
pub mod driver;
pub mod handover;
pub mod limit;
pub mod machine;
pub mod policy;
pub mod refused;
mod requests;
pub mod segments;
pub mod sequence;
pub mod srcu;
pub mod steps;
pub mod vain;
pub mod word;
pub mod worker;

pub use machine::{Action, Event, Machine, Refused, Start};
pub use policy::{AnyPolicy, Begin, Hint, Policy, Urgency};
pub use refused::NotGiven;
pub use segments::Segments;
pub use sequence::{Cookie, Sequence};
pub use word::Number;
