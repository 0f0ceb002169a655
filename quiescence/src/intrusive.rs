//! Concurrent structures whose nodes the caller brings along: they allocate nothing for what is put into them.
//!
//! They are laid out as liburcu's, and C programs use the same code by way of the crate `compat`.

mod patience;
mod wait_free_queue;

pub use self::patience::WouldBlock;
pub use self::wait_free_queue::{
    Chain, Consumer, Dequeued, Ends, QueueHead, QueueNode, QueueTail, WaitFreeQueue,
};
