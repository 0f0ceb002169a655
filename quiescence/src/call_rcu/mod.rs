//! Callbacks with embedded heads, and readers of programs that were compiled against liburcu.
//!
//! - [`callback_queue`]: callback queues that a thread of the program runs; how they work is in
//!   `reclaim/domain_state/head_queue.rs`.
//! - [`liburcu_readers`]: domains whose readers write the words of liburcu's protocol themselves.
//!
//! May import: all rooms but [`report`](crate::report) and [`process`](crate::process).

pub mod callback_queue;
pub mod liburcu_readers;
