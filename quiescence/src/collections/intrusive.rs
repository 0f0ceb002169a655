//! Concurrent structures whose nodes the caller brings along: they allocate nothing for what is put
//! into them. The feature `intrusive`, which is off by default.
//!
//! They are laid out as liburcu's, and C programs use the same code by way of the crate `compat`.

pub use super::hash_table::{
    Allocator as TableAllocator, Cursor, HashTable, Memory as TableMemory, Node, NodeCounts,
    Options as TableOptions, Protection, TableError, resume as resume_resizing,
};
pub use super::lock_free_queue::{CallAfter, LockFreeQueue, NotEmpty, SharedNode};
pub use super::lock_free_stack::{LockFreeStack, Unstacked};
pub use super::patience::{Patience, WouldBlock};
pub use super::sentinel_queue::SentinelQueue;
pub use super::wait_free_queue::{
    Chain, Consumer, Dequeued, Ends, QueueHead, QueueNode, QueueTail, WaitFreeQueue,
};
pub use super::wait_free_stack::{Popped, StackNode, Stacked, WaitFreeStack};
