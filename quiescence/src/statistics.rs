//! Counts of what has happened in a domain.

use std::sync::atomic::Ordering::Relaxed;

use crate::core::Core;

/// Counts of what has happened in a domain since it was made, as [`Domain::statistics`] found them.
/// Each is exact; together they are not a snapshot of one moment.
///
/// [`Domain::statistics`]: crate::Domain::statistics
///
/// ```
/// let before = quiescence::statistics();
/// quiescence::synchronize();
/// assert!(quiescence::statistics().grace_periods > before.grace_periods);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// Grace periods that have ended.
    pub grace_periods: u64,
    /// Heavy fences executed, for grace periods and before sleeping.
    pub heavy_fences: u64,
    /// Times that an updater went to sleep because of hold-outs.
    pub sleeps: u64,
    /// Processor time that the worker has spent on this domain's grace periods, in nanoseconds;
    /// callbacks are not counted.
    pub worker_ns: u64,
    /// Readers registered now.
    pub readers: u64,
    /// Threads that wait for a grace period now, or attend to one.
    pub waiters: u64,
    /// Callbacks queued (objects retired, closures given to `call`).
    pub callbacks_queued: u64,
    /// Callbacks that have run.
    pub callbacks_run: u64,
    /// Callbacks that panicked; they count as run.
    pub callbacks_panicked: u64,
}

impl Statistics {
    pub(crate) fn of(core: &Core) -> Self {
        let (callbacks_queued, callbacks_run) = core.queues.counts();
        Self {
            grace_periods: core.sequence().ended(),
            // Relaxed: counts, and nothing is inferred from them.
            heavy_fences: core.fences.load(Relaxed),
            sleeps: core.sleeps.load(Relaxed),
            worker_ns: core.worker_ns.load(Relaxed),
            readers: core.readers() as u64,
            waiters: core.waiters() as u64,
            callbacks_queued,
            callbacks_run,
            callbacks_panicked: core.queues.panicked.load(Relaxed),
        }
    }

    /// Callbacks that wait: for their grace period, or to be run.
    pub const fn callbacks_waiting(&self) -> u64 {
        self.callbacks_queued - self.callbacks_run
    }
}
