//! How much processor time this thread has had, and what time it is.

use std::sync::OnceLock;
use std::time::Instant;

/// Time since the first call, in nanoseconds.
pub(crate) fn monotonic_ns() -> u64 {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Processor time of the calling thread, in nanoseconds: grows while it runs and not while it waits.
#[cfg(target_os = "linux")]
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Where the system does not tell processor time apart, what the thread spent waiting counts as well, so
/// that a budget is kept all the more.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_cpu_ns() -> u64 {
    monotonic_ns()
}
