//! How many domains have ended that threads may have in their tables: the threads are to forget
//! them, sooner or later.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Ended domains whose entries a thread leaves in its table, at least.
const GARBAGE_MIN: usize = 8;

static ENDED: AtomicUsize = AtomicUsize::new(0);

/// A domain has ended that threads may have in their tables.
pub(crate) fn note_end_of_domain() {
    // Relaxed: only when a table is gone through depends on it.
    ENDED.fetch_add(1, Relaxed);
}

/// How many have ended.
#[inline(always)]
pub(crate) fn so_far() -> usize {
    // Relaxed: see `note_end_of_domain`.
    ENDED.load(Relaxed)
}

/// Whether a table that was gone through when `since` domains had ended is to be gone through: at
/// least [`GARBAGE_MIN`] and `least` have ended since.
#[inline(always)]
pub(crate) fn is_garbage(since: usize, least: usize) -> bool {
    let ended = so_far().wrapping_sub(since);
    ended >= GARBAGE_MIN && ended >= least
}
