//! What is measured of a rival, and how. Which rounds are run, in which order, and what the numbers
//! mean, is the business of [`suites`](crate::suites).
//!
//! - One operation in a loop ([`loops`]): of a word that is read, of cells of four words, of
//!   counters, of sections and reference counts.
//! - [`grace`]: how long a grace period takes, and what waiting for it costs the readers (`wait`:
//!   of whom).
//! - Replace and retire ([`replace`]: by whom): [`update`], what it costs, what it does to readers,
//!   and what many of them read meanwhile; [`stall`] and [`memory`], what waits when a reader
//!   stalls.
//! - [`hash`]: the same in a hash table, beside maps, and tables that give out ids. [`maps`]: maps
//!   of any size, for any key.
//! - [`enqueue`]: callbacks, and waiting for them.
//! - Sleepable domains: [`boot`], a burst of grace periods; [`blocked`], a reader that stays;
//!   [`domains`], their memory.
//! - [`store`]: replacing an `Arc` that many threads have loaded. [`garbage`]: what waits after the
//!   last store.
//! - [`tools`]: programs before and after a transformation.
//! - `cache`: loads that are slow or fast by where their data lies in the caches.
//! - [`engines`]: the engines of a domain on a path-lookup cache, of the names of a [`tree`].
//!
//! A case is given what a rival makes for it, and knows nothing of rivals.

mod allocator;
pub(crate) mod blocked;
pub(crate) mod boot;
pub(crate) mod cache;
pub(crate) mod crowd;
pub(crate) mod domains;
pub(crate) mod engines;
pub(crate) mod enqueue;
pub(crate) mod form;
pub(crate) mod garbage;
pub(crate) mod grace;
pub(crate) mod hash;
pub(crate) mod loops;
pub(crate) mod maps;
pub(crate) mod memory;
pub(crate) mod object;
pub(crate) mod replace;
pub(crate) mod stall;
pub(crate) mod store;
pub(crate) mod tools;
pub(crate) mod tree;
pub(crate) mod update;
pub(crate) mod wait;

/// The number behind this name in a file of the kernel's, if it says so.
fn kernel_says(file: &str, name: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    line.split_whitespace().next()?.parse().ok()
}

/// Sections between two announcements of a quiescent state, for readers that must announce; the
/// others run the same two loops. `BATCH` in `c/flavour.h` is the same number.
pub(crate) const BATCH: u64 = 1024;
