//! Sleeping until a word changes, and waking the threads that sleep.

use std::ffi::c_int;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Sleeps while the word is `expected`, for `at_most` if that is given. May return early.
pub(crate) fn sleep(word: &AtomicU32, expected: u32, at_most: Option<Duration>) {
    let operation = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
    let timeout = at_most.map(|at_most| libc::timespec {
        tv_sec: at_most.as_secs() as libc::time_t,
        tv_nsec: libc::c_long::from(at_most.subsec_nanos() as i32),
    });
    let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
    // SAFETY: the word lives as long as the reference; the timeout is valid or null. Callers check
    // the word again, whatever it returns.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), operation, expected, timeout) };
}

/// Wakes all threads that sleep on the word, which the caller has changed. The word's memory may be
/// gone by now: other sleepers at that address tolerate a stray wake-up.
pub(crate) fn wake_all(word: *const AtomicU32) {
    let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: an address, which is not read.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, c_int::MAX) };
}
