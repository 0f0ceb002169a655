//! What is counted while the simulation runs.

use crate::events::Time;
use crate::histogram::Histogram;

/// Counts of things that happened in the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) queued: u64,
    pub(crate) invoked: u64,
    /// Those that ran on another CPU than they were queued on.
    pub(crate) migrated: u64,
    /// Callbacks that the engine wanted to run and that no CPU had queued: an engine at fault.
    pub(crate) invoked_beyond_queue: u64,
    /// Batches that were run before each CPU had been quiescent since.
    pub(crate) early_batches: u64,
    pub(crate) waiting_peak: u64,
    pub(crate) waiting_bytes_peak: u64,
    /// Sum of the samples of waiting callbacks, and how many samples.
    pub(crate) waiting_sum: u128,
    pub(crate) samples: u64,
    pub(crate) callback_latency: Histogram,
    pub(crate) waiter_latency: Histogram,
    pub(crate) batches: Histogram,
    pub(crate) grace_period: Histogram,
    pub(crate) iterations: Histogram,
    pub(crate) operations: u64,
    pub(crate) ipis: u64,
    pub(crate) context_switches: u64,
    pub(crate) forced_switches: u64,
    pub(crate) ticks: u64,
    pub(crate) softirqs: u64,
    pub(crate) thread_runs: u64,
    /// Engine time while no task waited.
    pub(crate) background_picos: u64,
    pub(crate) worker_awake_max: Time,
    pub(crate) events: u64,
    /// When the grace period of each began that is in progress.
    open: Vec<Option<Time>>,
}

impl Tally {
    pub(crate) fn began(&mut self, of: usize, now: Time) {
        if of >= self.open.len() {
            self.open.resize(of + 1, None);
        }
        self.open[of] = Some(now);
    }

    pub(crate) fn ended(&mut self, of: usize, now: Time, counted: bool) {
        let began = self.open.get_mut(of).and_then(Option::take);
        if let (Some(began), true) = (began, counted) {
            self.grace_period.record(now.saturating_sub(began));
        }
    }
}
