//! How much CPU time this thread has had, and what time it is.

use std::sync::OnceLock;
use std::time::Instant;

/// Time since the first call, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// CPU time of the calling thread, in nanoseconds: grows while it runs and not while it waits.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // Not rustix's, which looks for the kernel's own code by itself and does not survive that where
    // valgrind has hidden it (rustix issue 1559). SAFETY: fills the time that it is given. The
    // clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Where the system does not tell CPU time apart, what the thread spent waiting counts as well, so
/// that a budget is kept all the more.
#[cfg(any(not(target_os = "linux"), miri))]
pub(crate) fn thread_cpu_ns() -> u64 {
    monotonic_ns()
}
