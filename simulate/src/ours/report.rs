//! The results of a run.

use serde::Serialize;

use super::options::Role;
use crate::events::Time;
use crate::histogram::{Histogram, Summary};

/// What was counted. Times in nanoseconds of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    /// For how long things were counted.
    pub duration_ns: Time,
    /// CPUs of the machine.
    pub cpus: usize,
    /// Updates: waits that have ended, objects retired, closures queued.
    pub updates: u64,
    /// Sections (turns, of QSBR readers) that fit into the running time of the readers, on average.
    pub reads: u64,
    /// How long threads waited for a grace period, without hurry.
    pub waits_ns: Summary,
    /// The same, expedited.
    pub waits_expedited_ns: Summary,
    /// How long updates took at the memory's limit.
    pub waits_at_limit_ns: Summary,
    /// Callbacks.
    pub callbacks: Callbacks,
    /// Grace periods that have ended.
    pub grace_periods: u64,
    /// Passes over readers; those of a driver that spins in vain count as one.
    pub scans: u64,
    /// `membarrier` system calls.
    pub membarriers: u64,
    /// CPUs that were interrupted by these.
    pub interrupts: u64,
    /// Times that a driver slept until holdouts had left.
    pub driver_sleeps: u64,
    /// Times that another thread took the place of a driver that made no progress.
    pub hand_overs: u64,
    /// Turns of the worker.
    pub worker_turns: u64,
    /// Switches from one thread to another.
    pub switches: u64,
    /// Threads that were started.
    pub threads_started: u64,
    /// Where the CPU time went.
    pub time: CpuTime,
    /// Readers in a section that had begun before a grace period that has ended, if that was
    /// checked. Always 0, or there is a fault.
    pub violations: u64,
}

/// Callbacks: objects and closures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Callbacks {
    /// Those that were queued.
    pub queued: u64,
    /// Those that have run.
    pub run: u64,
    /// The most that waited at one time.
    pub waiting_peak: u64,
    /// The most bytes.
    pub waiting_bytes_peak: u64,
    /// From the update to the end of the callback.
    pub age_ns: Summary,
}

/// CPU time of all threads, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuTime {
    /// Their own work, reading and updating.
    pub own_ns: Time,
    /// Asking for grace periods and driving them, in threads that wait or retire and in the worker.
    pub grace_periods_ns: Time,
    /// Running callbacks.
    pub callbacks_ns: Time,
    /// The worker's turns besides.
    pub worker_ns: Time,
    /// Lost to interrupts by `membarrier`.
    pub interrupts_ns: Time,
    /// Lost to switches, and to CPUs that leave idle.
    pub switches_ns: Time,
}

impl CpuTime {
    /// What grace periods cost: their steps, the worker's turns, and what other CPUs lose.
    pub const fn overhead_ns(&self) -> Time {
        self.grace_periods_ns + self.worker_ns + self.interrupts_ns
    }
}

impl Report {
    /// Updates without those whose callbacks have not run.
    pub fn finished_updates(&self) -> u64 {
        self.updates.saturating_sub(self.callbacks.queued.saturating_sub(self.callbacks.run))
    }

    /// What grace periods cost, in millionths of all CPUs.
    pub fn overhead_ppm(&self) -> u64 {
        let all_ns = u128::from(self.duration_ns) * self.cpus as u128;
        let overhead_ns = u128::from(self.time.overhead_ns());
        u64::try_from(overhead_ns * 1_000_000 / all_ns.max(1)).unwrap_or(u64::MAX)
    }
}

/// What a thread's time is spent on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Spending {
    /// Its own work.
    #[default]
    Own,
    /// Steps of grace periods, and asking for them.
    GracePeriods,
    /// Running callbacks.
    Callbacks,
    /// The worker's turns besides.
    Worker,
}

impl CpuTime {
    pub(super) fn add(&mut self, what: Spending, ns: Time) {
        *match what {
            Spending::Own => &mut self.own_ns,
            Spending::GracePeriods => &mut self.grace_periods_ns,
            Spending::Callbacks => &mut self.callbacks_ns,
            Spending::Worker => &mut self.worker_ns,
        } += ns;
    }
}

/// Times of which the report has a summary.
#[derive(Clone, Debug, Default)]
pub(super) struct Times {
    pub(super) waits: Histogram,
    pub(super) waits_expedited: Histogram,
    pub(super) waits_at_limit: Histogram,
    pub(super) callback_ages: Histogram,
}

/// Sections that fit into so much running time.
pub(super) fn reads(role: Option<Role>, own_ns: Time) -> u64 {
    match role {
        Some(Role::Reads { section_ns, gap_ns, .. } | Role::Comes { section_ns, gap_ns, .. }) => {
            own_ns / (section_ns + gap_ns)
        }
        Some(Role::Qsbr { turn_ns, .. }) => own_ns / turn_ns,
        _ => 0,
    }
}
