//! Concurrent structures whose nodes belong to the caller: an insertion allocates nothing. Requires
//! the feature `intrusive`, which is off by default.
//!
//! Their layouts are those of liburcu. C programs use the same code through the crate `compat`.

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
