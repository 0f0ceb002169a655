//! Blocks signals while a thread registers: a signal handler may read, and must not find its thread
//! half registered.

use std::mem::MaybeUninit;
use std::ptr;

/// The signals that the thread blocked before.
#[derive(Clone, Copy)]
pub(crate) struct Before(libc::sigset_t);

/// Blocks all signals.
pub(crate) fn block() -> Before {
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: fills the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is filled, and `before` is written: the call fails only if its first argument
    // is wrong.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: as above.
    Before(unsafe { before.assume_init() })
}

impl Before {
    /// Restores the signal mask.
    pub(crate) fn restore(self) {
        // SAFETY: a set that the system made.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, ptr::null_mut()) };
    }
}

/// Calls `f` with all signals blocked.
pub(crate) fn blocked<R>(f: impl FnOnce() -> R) -> R {
    //~ compat-block
    let before = block();
    let result = f();
    before.restore();
    result
}
