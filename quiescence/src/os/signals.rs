//! Signals: the worker blocks them all, so handlers run on the program's own threads.

/// Calls `f`, which starts a thread, with all signals blocked: the new thread inherits that.
#[cfg(all(unix, not(miri)))]
pub(crate) fn without<R>(f: impl FnOnce() -> R) -> R {
    use std::mem::MaybeUninit;
    use std::ptr;

    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: fills the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is filled; `before` is written if the call succeeds.
    let blocked =
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) } == 0;
    let result = f();
    if blocked {
        // SAFETY: `before` was written by the call that succeeded.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    result
}

/// No signals here.
#[cfg(any(not(unix), miri))]
pub(crate) fn without<R>(f: impl FnOnce() -> R) -> R {
    f()
}
