//! What a caller in C does not expect of a function that waits: that it changes `errno`, or that
//! the thread is cancelled inside it.
//!
//! liburcu's functions without a result leave `errno` to their callers, some of which are signal
//! handlers. And a thread that drives a grace period for everybody must not end in the midst of
//! that: `pthread_cancel` takes effect after it.

use std::ffi::c_int;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// glibc's and musl's.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Puts `errno` back at its end.
#[derive(Debug)]
struct Errno(c_int);

fn errno() -> *mut c_int {
    // SAFETY: the calling thread's own, always there.
    unsafe { libc::__errno_location() }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: the thread's own; it stays on its thread.
        unsafe { *errno() = self.0 }; //~ compat-errno
    }
}

/// Puts the thread's cancellation back at its end.
#[derive(Debug)]
struct Uncancelled(c_int);

impl Drop for Uncancelled {
    fn drop(&mut self) {
        let mut now = 0;
        // SAFETY: a state that it gave itself, and a place for the other.
        unsafe { pthread_setcancelstate(self.0, &raw mut now) };
    }
}

/// Calls `f`, and leaves `errno` as it was. For signal handlers as well.
pub(crate) fn with_errno<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the thread's own.
    let _errno = Errno(unsafe { *errno() });
    f()
}

/// Calls `f`, in which the thread is not cancelled. Inside [`with_errno`].
pub(crate) fn uncancelled<R>(f: impl FnOnce() -> R) -> R {
    //~ compat-uncancelled
    let mut before = 0;
    // SAFETY: a state that there is, and a place for the one before.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
    let _uncancelled = Uncancelled(before);
    f()
}

/// Calls `f`, in which the thread is not cancelled, and leaves `errno` as it was.
pub(crate) fn with_errno_uncancelled<R>(f: impl FnOnce() -> R) -> R {
    with_errno(|| uncancelled(f))
}
