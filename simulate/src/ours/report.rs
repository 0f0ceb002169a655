//! What came of a run.

use serde::Serialize;

use super::options::{Algorithm, Role};
use super::world::World;
use crate::events::Time;
use crate::histogram::Summary;

/// What was counted. Times in nanoseconds of virtual time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
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
    /// What grace periods cost, in millionths of all CPUs.
    pub fn overhead_ppm(&self) -> u64 {
        let all_ns = u128::from(self.duration_ns) * self.cpus as u128;
        let overhead_ns = u128::from(self.time.overhead_ns());
        u64::try_from(overhead_ns * 1_000_000 / all_ns.max(1)).unwrap_or(u64::MAX)
    }
}

impl World<'_> {
    pub(super) fn report(&self) -> Report {
        let counted = &self.counted;
        let spent = &self.spent;
        Report {
            duration_ns: self.options.duration,
            cpus: self.options.cpus,
            updates: counted.updates,
            reads: self.threads.iter().map(|thread| reads(thread.role, thread.own_ns)).sum(),
            waits_ns: counted.waits.summary(),
            waits_expedited_ns: counted.waits_expedited.summary(),
            waits_at_limit_ns: counted.waits_at_limit.summary(),
            callbacks: Callbacks {
                queued: counted.callbacks_queued,
                run: counted.callbacks_run,
                waiting_peak: counted.waiting_peak,
                waiting_bytes_peak: counted.waiting_bytes_peak,
                age_ns: counted.callback_ages.summary(),
            },
            grace_periods: counted.grace_periods,
            scans: counted.scans,
            membarriers: counted.membarriers,
            interrupts: self.interrupts,
            driver_sleeps: counted.driver_sleeps,
            hand_overs: counted.hand_overs,
            worker_turns: counted.worker_turns,
            switches: self.switches,
            threads_started: counted.threads_started,
            time: CpuTime {
                own_ns: spent.own_ns,
                grace_periods_ns: spent.grace_periods_ns,
                callbacks_ns: spent.callbacks_ns,
                worker_ns: spent.worker_ns,
                interrupts_ns: spent.interrupts_ns,
                switches_ns: spent.switches_ns,
            },
            violations: counted.violations,
        }
    }
}

/// Sections that fit into so much running time.
fn reads(role: Option<Role>, own_ns: Time) -> u64 {
    match role {
        Some(Role::Reads { section_ns, gap_ns, .. } | Role::Comes { section_ns, gap_ns, .. }) => {
            own_ns / (section_ns + gap_ns)
        }
        Some(Role::Qsbr { turn_ns, .. }) => own_ns / turn_ns,
        _ => 0,
    }
}

impl Algorithm {
    /// Its name, as [`named`](Self::named) takes it.
    pub const fn name(&self) -> &'static str {
        use grace::policy::AnyPolicy;
        match self {
            Self::Library { policy: AnyPolicy::Adaptive(_), .. } => "adaptive",
            Self::Library { policy: AnyPolicy::Poll(_), .. } => "poll",
            Self::Library { policy: AnyPolicy::Tick(_), .. } => "tick",
            Self::Library { policy: AnyPolicy::Token(_), .. } => "token",
            Self::Liburcu => "liburcu",
        }
    }
}
