//! Concurrent structures whose nodes the caller brings along: they allocate nothing for what is put into them.
//!
//! They are laid out as liburcu's, and C programs use the same code by way of the crate `compat`.

mod patience;
mod wait_free_queue;
mod sentinel_queue;
mod wait_free_stack;
mod lock_free_stack;
mod lock_free_queue;

#[cfg(all(test, loom))]
mod loom_tests;

pub use self::lock_free_queue::{CallAfter, LockFreeQueue, NotEmpty, SharedNode};
pub use self::lock_free_stack::{LockFreeStack, Unstacked};
pub use self::patience::WouldBlock;
pub use self::sentinel_queue::SentinelQueue;
pub use self::wait_free_queue::{
    Chain, Consumer, Dequeued, Ends, QueueHead, QueueNode, QueueTail, WaitFreeQueue,
};
pub use self::wait_free_stack::{Popped, StackNode, Stacked, WaitFreeStack};
