//! Which thread is in the midst of a `fork`, and holds all of the library's locks.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::thread;

/// The thread, as [`thread::token`]; else 0.
static PREPARED: AtomicUsize = AtomicUsize::new(0);

/// The calling thread holds all locks from now on.
pub(crate) fn begin() {
    // Relaxed: for this thread alone, which is the one that may find itself there.
    PREPARED.store(thread::token(), Relaxed);
}

/// It is about to let them go; in the parent and in the child.
pub(crate) fn end() {
    PREPARED.store(0, Relaxed);
}

/// Whether it is the calling thread: for what another handler of the same `fork` may call.
pub(crate) fn is_here() -> bool {
    PREPARED.load(Relaxed) == thread::token()
}
