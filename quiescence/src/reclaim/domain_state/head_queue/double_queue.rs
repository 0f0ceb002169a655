//! Which heads wait, for those who want to know at once that one is queued twice.
//!
//! A head of C's need not be initialised before it is queued, so nothing in it tells one that waits
//! from garbage; the addresses are kept beside them. That costs a lock and an allocation at every
//! push: it is done in builds with debug assertions, and under `QUIESCENCE_DEBUG=1`.

use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::Relaxed;

use crate::os::environment;
use crate::os::forking::{AtFork, ForkMutex};
use crate::os::sync::{Rank, const_unless_loom};
use crate::reclaim::by_address::ByAddress;
use crate::reclaim::head::Head;

const_unless_loom! {
    /// By their addresses.
    static WAITING: ForkMutex<ByAddress<()>> = ForkMutex::new(Rank::Heads, ByAddress::new());
}

/// Whether it is done.
#[inline]
pub(crate) fn is_on() -> bool {
    const UNKNOWN: u8 = 0;
    const OFF: u8 = 1;
    const ON: u8 = 2;
    static IS_ON: AtomicU8 = AtomicU8::new(UNKNOWN);
    // Relaxed: the first thread to ask finds out, and all find the same.
    match IS_ON.load(Relaxed) {
        OFF => false,
        ON => true,
        _ => {
            let on = cfg!(debug_assertions) || environment::is(c"QUIESCENCE_DEBUG", "1");
            IS_ON.store(if on { ON } else { OFF }, Relaxed);
            on
        }
    }
}

/// A head is about to wait. Returns whether it did not wait already.
pub(crate) fn note(head: *mut Head) -> bool {
    let mut waiting = WAITING.lock();
    let is_new = waiting.get(head).is_none();
    if is_new {
        waiting.insert(head, ());
    }
    is_new
}

/// A head waits no more.
pub(crate) fn forget(head: *mut Head) {
    WAITING.lock().remove(head);
}

impl AtFork for ByAddress<()> {
    /// What waits is noted anew, by the repair of its domain.
    fn in_child(&mut self) {
        drop(self.take_all());
    }
}
