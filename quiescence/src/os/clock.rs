//! How much processor time this thread has had.

/// Processor time of the calling thread, in nanoseconds: grows while it runs and not while it waits.
#[cfg(target_os = "linux")]
pub(crate) fn thread_cpu_ns() -> u64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// Time since the first call, in nanoseconds: where the system does not tell processor time apart, what
/// the thread spent waiting counts as well, so that a budget is kept all the more.
#[cfg(not(target_os = "linux"))]
pub(crate) fn thread_cpu_ns() -> u64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static FIRST: OnceLock<Instant> = OnceLock::new();
    FIRST.get_or_init(Instant::now).elapsed().as_nanos() as u64
}
