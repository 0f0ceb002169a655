//! The results of a run: only whole numbers and names, so that equal runs give equal bytes.

use serde::Serialize;

use crate::events::Time;
use crate::histogram::Summary;
use crate::line::Traffic;
use crate::memory::SlabUse;
use crate::setup::SECOND;
use crate::timeline::GracePeriod;

/// What a run has shown. Times are in nanoseconds; all of it is of the time after the warm-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The engine, and its numbers.
    pub engine: Named,
    /// The workload, and its numbers.
    pub workload: Named,
    /// The machine.
    pub machine: VirtualMachine,
    /// How long grace periods took; `count` of them ended.
    pub grace_period_ns: Summary,
    /// Callbacks, from being queued to being run.
    pub callback_latency_ns: Summary,
    /// Tasks that waited for a callback, from queueing it to running again.
    pub waiter_latency_ns: Summary,
    /// Callbacks that were run at a time.
    pub callbacks_per_batch: Summary,
    /// Where CPU time went.
    pub time: CpuTime,
    /// Callbacks in numbers.
    pub callbacks: Callbacks,
    /// Operations of the workload that were done.
    pub operations: u64,
    /// Rounds of a workload that has them.
    pub iteration_ns: Summary,
    /// The longest time for which a softirq, ksoftirqd or the engine's thread did not come to rest.
    pub worker_awake_max_ns: Time,
    /// What the engine made the machine do, and what the machine did.
    pub machinery: Machinery,
    /// The engine's cache lines and locks.
    pub lines: Traffic,
    /// What the slab allocator did, if the workload has one.
    pub slab: Option<SlabUse>,
    /// The first grace periods after the warm-up.
    pub timeline: Vec<GracePeriod>,
}

/// A name and numbers that belong to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The name.
    pub name: String,
    /// The numbers.
    pub parameters: Vec<(String, u64)>,
}

/// The machine that was simulated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct VirtualMachine {
    /// CPUs.
    pub cpus: usize,
    /// Ticks a second.
    pub hz: u32,
    /// Whether ticks were off where they could be.
    pub tickless: bool,
    /// Whether the kernel was preemptible.
    pub preemptible: bool,
    /// What the random draws began with.
    pub seed: u64,
    /// How long it ran before anything was counted.
    pub warm_up_ns: Time,
    /// For how long things were counted.
    pub duration_ns: Time,
}

/// Where CPU time went, over all CPUs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CpuTime {
    /// In programs.
    pub user_ns: u64,
    /// In the kernel, for programs; ticks and ordinary context switches included.
    pub kernel_ns: u64,
    /// Nowhere.
    pub idle_ns: u64,
    /// In the engine, and in interrupts and switches that would not be but for it.
    pub engine_ns: u64,
    /// Of that, what was spent while no task waited: what the budget is for.
    pub background_ns: u64,
    /// In callbacks.
    pub callback_ns: u64,
}

/// Callbacks in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Callbacks {
    /// Queued.
    pub queued: u64,
    /// Run.
    pub invoked: u64,
    /// Run on another CPU than they were queued on.
    pub migrated: u64,
    /// That the engine wanted run though there were none: more than 0 is a fault of the engine's.
    pub invoked_beyond_queue: u64,
    /// Batches that were run before every CPU had been quiescent since they were queued: more
    /// than 0 is a fault of the engine's. Checked with up to 64 CPUs.
    pub early_batches: u64,
    /// The most that waited at a time.
    pub waiting_peak: u64,
    /// The most memory that waited at a time.
    pub waiting_bytes_peak: u64,
    /// How many waited, on average, in thousandths; from samples in time.
    pub waiting_mean_milli: u64,
}

/// What the engine made the machine do, and what the machine did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Machinery {
    /// Inter-CPU interrupts that the engine sent.
    pub ipis: u64,
    /// Passes through the scheduler.
    pub context_switches: u64,
    /// Those of them that the engine forced.
    pub forced_switches: u64,
    /// Ticks.
    pub ticks: u64,
    /// Runs of the engine's softirq.
    pub softirqs: u64,
    /// Runs of the engine's thread.
    pub thread_runs: u64,
    /// Events that were simulated, ticks not included; warm-up included.
    pub events: u64,
}

impl CpuTime {
    /// All of it.
    pub const fn total_ns(&self) -> u64 {
        self.user_ns + self.kernel_ns + self.idle_ns + self.engine_ns + self.callback_ns
    }

    /// Share of a part in all, in millionths.
    pub const fn share_ppm(&self, part_ns: u64) -> u64 {
        let total = self.total_ns();
        if total == 0 {
            return 0;
        }
        (part_ns as u128 * 1_000_000 / total as u128) as u64
    }

    /// All that was not idle, in millionths.
    pub const fn busy_ppm(&self) -> u64 {
        self.share_ppm(self.total_ns() - self.idle_ns)
    }

    /// The engine's share, callbacks not included, in millionths.
    pub const fn engine_ppm(&self) -> u64 {
        self.share_ppm(self.engine_ns)
    }

    /// The share of callbacks, in millionths.
    pub const fn callback_ppm(&self) -> u64 {
        self.share_ppm(self.callback_ns)
    }
}

impl Report {
    /// So many a second, in thousandths.
    pub const fn per_second_milli(&self, count: u64) -> u64 {
        (count as u128 * 1_000 * SECOND as u128 / self.machine.duration_ns as u128) as u64
    }
}
