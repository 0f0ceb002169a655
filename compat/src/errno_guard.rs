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

fn errno() -> *mut c_int {
    // SAFETY: the calling thread's own, always there.
    unsafe { libc::__errno_location() }
}

/// Calls `f`, and leaves `errno` as it was. For signal handlers as well.
pub(crate) fn with_errno<R>(f: impl FnOnce() -> R) -> R {
    // SAFETY: the thread's own.
    let before = unsafe { *errno() };
    let result = f();
    // SAFETY: as above.
    unsafe { *errno() = before }; //~ compat-errno
    result
}

/// Calls `f`, in which the thread is not cancelled. Inside [`with_errno`].
pub(crate) fn uncancelled<R>(f: impl FnOnce() -> R) -> R {
    //~ compat-uncancelled
    let (mut before, mut disabled) = (0, 0);
    // SAFETY: a state that there is, and a place for the one before.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
    let result = f();
    // SAFETY: a state that it gave itself, and a place for the other.
    unsafe { pthread_setcancelstate(before, &raw mut disabled) };
    result
}

/// Calls `f`, in which the thread is not cancelled, and leaves `errno` as it was.
pub(crate) fn with_errno_uncancelled<R>(f: impl FnOnce() -> R) -> R {
    with_errno(|| uncancelled(f))
}
