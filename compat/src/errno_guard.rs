//! Preserves `errno`, and defers cancellation, in functions that wait.
//!
//! liburcu's functions without a result do not change `errno`: some callers are signal handlers.
//! And a thread that drives a grace period for others must not be cancelled in the middle of it:
//! `pthread_cancel` takes effect afterwards.

use std::ffi::c_int;

pub(crate) use quiescence::liburcu_readers::system::keeping_errno as with_errno;

unsafe extern "C" {
    fn pthread_setcancelstate(state: c_int, before: *mut c_int) -> c_int;
}

/// glibc's and musl's.
const PTHREAD_CANCEL_DISABLE: c_int = 1;

/// Calls `f` with cancellation disabled, and preserves `errno`.
pub(crate) fn with_errno_uncancelled<R>(f: impl FnOnce() -> R) -> R {
    with_errno(|| {
        //~ compat-uncancelled
        let (mut before, mut disabled) = (0, 0);
        // SAFETY: a valid state, and a place for the previous one.
        unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &raw mut before) };
        let result = f();
        // SAFETY: the state that it returned, and a place for the other.
        unsafe { pthread_setcancelstate(before, &raw mut disabled) };
        result
    })
}
