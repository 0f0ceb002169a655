//! Signals: the worker blocks them all, so handlers run on the program's own threads.

/// Blocks all signals. Returns those that the thread blocked before.
#[cfg(all(unix, not(miri)))]
pub fn block() -> libc::sigset_t {
    let mut all = std::mem::MaybeUninit::uninit();
    let mut before = std::mem::MaybeUninit::uninit();
    // SAFETY: fills the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: `all` is filled, and `before` is written: the call fails only if its first argument
    // is wrong.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    // SAFETY: as above.
    unsafe { before.assume_init() }
}

/// Blocks these signals and no others.
#[cfg(all(unix, not(miri)))]
pub fn restore(before: &libc::sigset_t) {
    // SAFETY: a set that the system made.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before, std::ptr::null_mut()) };
}

/// Calls `f` with all signals blocked, also in the threads that it starts.
#[cfg(all(unix, not(miri)))]
pub fn without<R>(f: impl FnOnce() -> R) -> R {
    //~ compat-block
    let before = block();
    let result = f();
    restore(&before);
    result
}

/// No signals here.
#[cfg(any(not(unix), miri))]
pub(crate) fn without<R>(f: impl FnOnce() -> R) -> R {
    f()
}
