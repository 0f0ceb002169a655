//! Single operations of our library and of its rivals, for `rcu bench`.
//!
//! What is measured and how is decided here, and all unsafe code that it takes stays here; which
//! rounds are run, in which order, and what the numbers mean, is the business of the caller.
//!
//! - [`read`]: enter, load, read a word, leave.
//! - [`grace`]: how long a grace period takes, and what waiting for it costs the readers.
//! - [`update`]: replace and retire a small object.
//! - [`engines`]: the engines of a domain on a path-lookup cache ([`path_cache`]).

mod crew;
pub mod engines;
pub mod grace;
mod grace_rivals;
#[cfg(feature = "liburcu")]
mod liburcu;
pub mod path_cache;
pub mod read;
pub mod update;

/// Whether the rivals from liburcu are compiled in.
pub const HAS_LIBURCU: bool = cfg!(feature = "liburcu");

/// Sections between two announcements of a quiescent state, for readers that must announce; the
/// others run the same two loops. `BATCH` in `c/flavour.h` is the same number.
const BATCH: u64 = 1024;
