//! Naps: waiting for events that wake no thread.

use std::time::Duration;

/// Between two looks at what has no hurry.
pub(crate) const TICK: Duration = Duration::from_nanos(grace::driver::TICK_NS);

/// Lets a tick go by.
pub(crate) fn tick() {
    nap(TICK);
}

/// Lets others do what this thread waits for.
pub(crate) fn moment() {
    nap(Duration::from_nanos(grace::driver::MOMENT_NS));
}

/// Lets so much time go by, or less, if a signal comes. Loom has no clock.
///
/// Not by the C library's `nanosleep`: that is a cancellation point, and a driver that
/// `pthread_cancel` ends there leaves its domain without one for ever.
pub(crate) fn nap(time: Duration) {
    if cfg!(loom) {
        return super::sync::relax();
    }
    #[cfg(target_os = "linux")]
    super::futex::wait(&super::sync::AtomicU32::new(0), 0, Some(time));
    #[cfg(not(target_os = "linux"))]
    std::thread::sleep(time);
}
