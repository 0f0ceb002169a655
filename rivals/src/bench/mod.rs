//! Single operations of our library and of its rivals, for `rcu bench`.
//!
//! What is measured and how is decided here, and all unsafe code that it takes stays here; which
//! rounds are run, in which order, and what the numbers mean, is the business of the caller.
//!
//! - [`read`]: enter, load, read a word, leave.
//! - [`grace`]: how long a grace period takes, and what waiting for it costs the readers; [`restartable`]:
//!   where readers are never waited for.
//! - Replace and retire ([`replace`]: by whom): [`update`], what it costs; [`tail`], what it does to
//!   readers; [`stall`] and [`memory`], what waits when a reader stalls.
//! - [`table`]: the same in a hash table, beside maps.
//! - [`enqueue`]: callbacks, and waiting for them.
//! - [`single`]: one operation in a loop, of [`sections`], [`snapshots`], reference counts ([`counted`])
//!   and [`counters`].
//! - Sleepable domains: [`boot`], a burst of grace periods; [`blocked`], a reader that stays; [`domains`],
//!   their memory.
//! - [`store`]: replacing an `Arc` that many threads have loaded.
//! - [`engines`]: the engines of a domain on a path-lookup cache ([`path_cache`]).

mod allocator;
#[cfg(test)]
mod alone;
pub mod blocked;
pub mod boot;
mod clock;
pub mod counted;
pub mod counters;
mod crew;
pub mod domains;
pub mod engines;
pub mod enqueue;
pub mod grace;
mod grace_rivals;
#[cfg(feature = "liburcu")]
mod liburcu;
#[cfg(feature = "liburcu")]
mod liburcu_table;
#[cfg(feature = "liburcu")]
mod liburcu_update;
mod maps;
pub mod memory;
mod object;
pub mod path_cache;
pub mod read;
pub mod replace;
pub mod restartable;
mod schemes;
pub mod sections;
pub mod single;
pub mod snapshots;
pub mod stall;
pub mod store;
pub mod table;
pub mod tail;
mod together;
pub mod update;

/// Whether the rivals from liburcu are compiled in.
pub const HAS_LIBURCU: bool = cfg!(feature = "liburcu");

/// Sections between two announcements of a quiescent state, for readers that must announce; the
/// others run the same two loops. `BATCH` in `c/flavour.h` is the same number.
const BATCH: u64 = 1024;
