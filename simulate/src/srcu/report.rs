//! What a run measures, during the run and at its end.

use crate::events::Time;

/// What came of a simulation. Times in nanoseconds of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Report {
    /// Calls that came back.
    pub calls: u32,
    /// Calls that were asked for. More than `calls` if the limit was reached.
    pub calls_asked: u32,
    /// From the first call's preparation to the last call's return.
    pub elapsed_ns: u64,
    /// How long a call took: the median.
    pub latency_p50_ns: u64,
    /// 90 of 100 took no longer.
    pub latency_p90_ns: u64,
    /// 99 of 100 took no longer.
    pub latency_p99_ns: u64,
    /// The longest.
    pub latency_max_ns: u64,
    /// The sum.
    #[serde(skip)]
    pub latency_sum_ns: u64,
    /// The worker's CPU time.
    pub worker_ns: u64,
    /// The longest stretch without the worker sleeping, from a wake-up to the next sleep.
    pub worker_awake_max_ns: u64,
    /// Runs of the worker.
    pub runs: u64,
    /// Looks at an index.
    pub checks: u64,
    /// Those of them that found a reader.
    pub checks_failed: u64,
    /// How often the worker was queued for a later jiffy.
    pub sleeps: u64,
    /// How often it napped by a high-resolution timer.
    pub naps: u64,
    /// How often an idle CPU pulled the caller over while it waited for the worker's.
    pub pulls: u64,
    /// Grace periods that ended.
    pub grace_periods: u64,
    /// Those of them whose callbacks were delayed.
    pub callbacks_delayed: u64,
}

impl Report {
    /// The worker's share of one CPU, in parts of a million.
    pub fn worker_share_ppm(&self) -> u64 {
        let share = u128::from(self.worker_ns) * 1_000_000 / u128::from(self.elapsed_ns.max(1));
        share as u64
    }

    /// Whether all calls came back before the limit.
    pub fn is_complete(&self) -> bool {
        self.calls == self.calls_asked
    }
}

/// A report in the making.
#[derive(Clone, Debug, Default)]
pub(super) struct Record {
    pub(super) report: Report,
    latencies: Vec<u64>,
    /// Since when the worker has been awake, and since when it runs.
    pub(super) awake_since: Option<Time>,
    pub(super) runs_since: Option<Time>,
}

impl Record {
    pub(super) fn call(&mut self, latency_ns: u64) {
        self.report.calls += 1;
        self.report.latency_sum_ns += latency_ns;
        self.latencies.push(latency_ns);
    }

    pub(super) fn worker_sleeps(&mut self, now: Time) {
        if let Some(since) = self.awake_since.take() {
            self.report.worker_awake_max_ns = self.report.worker_awake_max_ns.max(now - since);
        }
    }

    pub(super) fn worker_stops(&mut self, now: Time) {
        if let Some(since) = self.runs_since.take() {
            self.report.worker_ns += now - since;
        }
    }

    pub(super) fn finish(mut self, calls_asked: u32, now: Time) -> Report {
        self.worker_stops(now);
        self.worker_sleeps(now);
        self.latencies.sort_unstable();
        // The nearest rank.
        let percentile = |percent: usize| {
            let rank = (self.latencies.len() * percent).div_ceil(100).max(1);
            self.latencies.get(rank - 1).copied().unwrap_or(0)
        };
        Report {
            calls_asked,
            elapsed_ns: now,
            latency_p50_ns: percentile(50),
            latency_p90_ns: percentile(90),
            latency_p99_ns: percentile(99),
            latency_max_ns: percentile(100),
            ..self.report
        }
    }
}
