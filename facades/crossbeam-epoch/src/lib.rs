//! The interface of `crossbeam-epoch` 0.9 on [`quiescence`]: what a program gets that asks for the
//! original and has one line more in its `Cargo.toml`.
//!
//! Everything is [`quiescence::epoch`]'s, whose page says what differs: memory that waits is
//! bounded, and the outermost guard of a thread that has gone over the limit waits when it is
//! dropped.

#![no_std]

#[cfg(feature = "alloc")]
#[expect(deprecated)]
pub use quiescence::epoch::{
    Atomic, Collector, CompareAndSetError, CompareAndSetOrdering, CompareExchangeError, Guard,
    LocalHandle, Owned, Pointable, Pointer, Shared, unprotected,
};
#[cfg(feature = "std")]
pub use quiescence::epoch::{default_collector, is_pinned, pin};
