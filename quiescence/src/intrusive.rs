//! Concurrent structures whose nodes the caller brings along: they allocate nothing for what is put into them.
//!
//! They are laid out as liburcu's, and C programs use the same code by way of the crate `compat`.

mod patience;
mod wait_free_queue;
mod sentinel_queue;
mod wait_free_stack;
mod lock_free_stack;
mod lock_free_queue;
mod hash_table;

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(not(loom))]
pub(crate) use self::hash_table::worker as hash_table_worker;
#[cfg(not(loom))]
pub use self::hash_table::{
    Cursor, HashTable, Memory as TableMemory, Node, NodeCounts, Options as TableOptions,
    Protection, TableError, resume as resume_resizing,
};
pub use self::lock_free_queue::{CallAfter, LockFreeQueue, NotEmpty, SharedNode};
pub use self::lock_free_stack::{LockFreeStack, Unstacked};
pub use self::patience::WouldBlock;
pub use self::sentinel_queue::SentinelQueue;
pub use self::wait_free_queue::{
    Chain, Consumer, Dequeued, Ends, QueueHead, QueueNode, QueueTail, WaitFreeQueue,
};
pub use self::wait_free_stack::{Popped, StackNode, Stacked, WaitFreeStack};
