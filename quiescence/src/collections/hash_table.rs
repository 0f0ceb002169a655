//! A lock-free hash table that grows and shrinks during look-ups and updates: a split-ordered list
//! of nodes that belong to the caller. C programs know it as liburcu's `cds_lfht`.
//!
//! All nodes are in one list, sorted by the *reversed* bits of their hashes. So the nodes of a
//! bucket are adjacent, and stay adjacent when the bucket is split: the split inserts one more
//! bucket node between them, and moves none. Source: Ori Shalev and Nir Shavit, "Split-ordered
//! lists", J. ACM 2006; the list is Maged Michael's (SPAA 2002); the protection of nodes by RCU,
//! duplicates, and replacement are from liburcu's interface (Mathieu Desnoyers, Lai Jiangshan).
//!
//! | file | what it is |
//! |---|---|
//! | `node` | the node that is embedded in an object |
//! | `list` | the list and the five operations that change it |
//! | `split` | how bucket nodes are linked into the list, and unlinked |
//! | `allocator` | where memory comes from |
//! | `buckets` | where the bucket nodes are |
//! | `resize` | the size |
//! | `worker` | the thread that resizes |
//! | `protection` | what a table must know about its readers |
//! | `public` | what users see |

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
