//! Which thread is in the middle of a `fork`, and holds all of the library's locks.

use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

use super::thread;

/// The [`thread::token`] of that thread; 0 if there is none.
static PREPARED: AtomicUsize = AtomicUsize::new(0);

/// The calling thread holds all locks from now on.
pub(crate) fn begin() {
    // Relaxed: only this thread can find its own token here.
    PREPARED.store(thread::token(), Relaxed);
}

/// The calling thread is about to release them, in the parent or in the child.
pub(crate) fn end() {
    PREPARED.store(0, Relaxed);
}

/// Whether that thread is the calling one: for functions that another handler of the same `fork`
/// may call.
pub(crate) fn is_here() -> bool {
    PREPARED.load(Relaxed) == thread::token()
}
