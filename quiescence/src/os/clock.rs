//! The CPU time of the calling thread, and monotonic time.

use std::sync::OnceLock;
use std::time::Instant;

/// Time since the first call, in nanoseconds. Under loom no time passes.
#[inline(never)]
pub(crate) fn monotonic_ns() -> u64 {
    if cfg!(loom) {
        return 0;
    }
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// CPU time of the calling thread, in nanoseconds: grows while it runs and not while it waits.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn thread_cpu_ns() -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills `time`. The clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// If the system does not count CPU time per thread, waiting counts as well: a budget is still
/// kept.
#[cfg(any(not(target_os = "linux"), miri))]
pub(crate) fn thread_cpu_ns() -> u64 {
    monotonic_ns()
}
