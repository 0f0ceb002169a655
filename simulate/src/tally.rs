//! Counts that are kept while the simulation runs.

use crate::events::Time;
use crate::histogram::Histogram;
use crate::report::{Callbacks, Machinery};

/// Counts of things that happened in the window.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tally {
    pub(crate) callbacks: Callbacks,
    /// Sum of the samples of waiting callbacks, and how many samples.
    pub(crate) waiting_sum: u128,
    pub(crate) samples: u64,
    pub(crate) callback_latency: Histogram,
    pub(crate) waiter_latency: Histogram,
    pub(crate) batches: Histogram,
    pub(crate) grace_period: Histogram,
    pub(crate) iterations: Histogram,
    pub(crate) operations: u64,
    pub(crate) machinery: Machinery,
    /// Engine time while no task waited.
    pub(crate) background_picos: u64,
    pub(crate) worker_awake_max: Time,
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
