//! The CPU time of the calling thread, and monotonic time.

use std::time::Duration;

/// Time since some moment, in nanoseconds: never 0, but under loom, where no time passes.
#[cfg(all(target_os = "linux", not(miri)))]
#[inline(never)]
pub(crate) fn monotonic_ns() -> u64 {
    if cfg!(loom) { 0 } else { now_ns(libc::CLOCK_MONOTONIC) }
}

/// As above.
#[cfg(any(not(target_os = "linux"), miri))]
pub(crate) fn monotonic_ns() -> u64 {
    use std::{sync::OnceLock, time::Instant};
    static FIRST: OnceLock<Instant> = OnceLock::new();
    if cfg!(loom) { 0 } else { FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64 + 1 }
}

/// CPU time of the calling thread, in nanoseconds: grows while it runs and not while it waits.
#[cfg(all(target_os = "linux", not(miri)))]
pub(crate) fn thread_cpu_ns() -> u64 {
    now_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// Time since 1970, in nanoseconds.
#[cfg(target_os = "linux")]
pub(crate) fn time_ns() -> u64 {
    now_ns(libc::CLOCK_REALTIME)
}

#[cfg(target_os = "linux")]
fn now_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: fills `time`. Every Linux has these clocks.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// If the system does not count CPU time per thread, waiting counts as well: a budget is still
/// kept.
#[cfg(any(not(target_os = "linux"), miri))]
pub(crate) fn thread_cpu_ns() -> u64 {
    monotonic_ns()
}

/// At most `u64::MAX`, which is 584 years.
pub(crate) fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}
