//! A hash table that grows and shrinks while it is read and changed: split-ordered lists,
//! lock-free, with nodes that the caller brings along. C programs know it as liburcu's `cds_lfht`.
//!
//! All nodes stand in one list, sorted by the *reversed* bits of their hashes, so that the nodes of
//! a bucket stand together, and stay together when a bucket is split in two: then one more mark is
//! put between them, and no node moves. Source: Ori Shalev and Nir Shavit, "Split-ordered lists",
//! J. ACM 2006; the list is Maged Michael's (SPAA 2002); that nodes are protected by RCU,
//! duplicates, and replacing are from liburcu's interface (Mathieu Desnoyers, Lai Jiangshan).
//!
//! | file | what it is |
//! |---|---|
//! | `node` | what an object carries |
//! | `list` | the list and its five changes |
//! | `split` | how buckets come into the list and out of it |
//! | `allocator` | where their memory is from |
//! | `buckets` | where the buckets' nodes are |
//! | `resize` | the size |
//! | `worker` | the thread that resizes |
//! | `protection` | what a table needs to know of its readers |
//! | `public` | what its users see |

mod allocator;
mod buckets;
mod list;
#[cfg(all(test, loom))]
mod loom_tests;
mod node;
mod protection;
mod public;
mod split;
mod resize;
mod worker;

pub use self::allocator::Allocator;
pub use self::buckets::Memory;
pub use self::node::{Cursor, Node};
pub use self::protection::Protection;
pub use self::public::*;
pub use self::worker::resume;
