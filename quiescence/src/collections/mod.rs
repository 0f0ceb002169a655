//! Concurrent queues, stacks, and the hash table, as structures whose nodes the caller brings
//! along.
//!
//! - [`wait_free_queue`], [`sentinel_queue`], [`lock_free_queue`]: queues. [`wait_free_stack`],
//!   [`lock_free_stack`]: stacks.
//! - [`hash_table`]: the hash table, which grows and shrinks beside its users.
//! - [`patience`]: how long an operation waits for another one that is half-way.
//! - [`id_map`]: a table of values by ids.
//! - [`intrusive`]: the names that are public.
//!
//! May import: the rooms from `os` to `sync`.

pub mod hash_map;
#[cfg(not(loom))]
pub mod hash_set;
pub mod id_map;
pub mod intrusive;

mod patience;
mod wait_free_queue;
mod sentinel_queue;
mod wait_free_stack;
mod lock_free_stack;
mod lock_free_queue;
mod hash_table;

#[cfg(not(loom))]
pub use self::hash_map::HashMap;
#[cfg(not(loom))]
pub use self::hash_set::HashSet;
#[cfg(not(loom))]
pub use self::id_map::IdMap;
pub use self::id_map::{Id, Mark};

#[cfg(all(test, loom))]
mod loom_tests;

#[cfg(not(loom))]
pub(crate) use self::hash_table::worker as hash_table_worker;
