//! Hooks by which the torture changes restartable sequences: it makes some of them long, and may
//! announce none of them, so that they are not restarted (`no-restart`). Not in the library itself.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

/// Delays that make a fault likelier to show.
#[inline(always)]
pub(super) fn spins() -> u64 {
    static CALLS: AtomicU64 = AtomicU64::new(0);
    if CALLS.fetch_add(1, Relaxed).is_multiple_of(16) { 2_000 } else { 0 }
}

/// What is announced of a descriptor's address: all of it, or nothing. (The trial would find out.)
#[inline(always)]
pub(super) fn announced() -> u64 {
    u64::MAX //~ no-restart
}
