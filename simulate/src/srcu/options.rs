//! The options of the simulation, and which are refused.

use grace::srcu::{AdaptiveDelay, AnyDelay, Published};

use crate::setup::{Impossible, ensure};

/// The names of the delay functions that [`variant`] knows.
pub const VARIANTS: &[&str] =
    &["5.18", "5.19-rc1", "first-diff", "block-removed", "final", "adaptive"];

/// The delay function of this name, for a kernel with so many ticks a second; `None` if there is
/// none.
pub fn variant(name: &str, hz: u32) -> Option<AnyDelay> {
    Some(match name {
        "5.18" => AnyDelay::Published(Published::V5_18),
        "5.19-rc1" => AnyDelay::Published(Published::V5_19_RC1),
        "first-diff" => AnyDelay::Published(Published::FIRST_DIFF),
        "block-removed" => AnyDelay::Published(Published::BLOCK_REMOVED),
        "final" => AnyDelay::Published(Published::final_at(hz)),
        "adaptive" => AnyDelay::Adaptive(AdaptiveDelay::at(hz)),
        _ => return None,
    })
}

/// Where the worker runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Placement {
    /// On the caller's CPU, as a per-CPU workqueue does; callbacks on the boot CPU.
    WithCaller,
    /// Worker and callbacks on a CPU of their own, the boot CPU.
    Apart,
}

/// The times of the fair scheduler, in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SchedulerTimes {
    /// How long it takes until everybody has run once.
    pub latency_ns: u64,
    /// How long somebody runs before a tick may preempt it for fairness.
    pub min_granularity_ns: u64,
    /// By how much one that wakes must be behind to preempt.
    pub wakeup_granularity_ns: u64,
    /// How long somebody runs before one that wakes may preempt it.
    pub protected_ns: u64,
    /// A task that ran so recently is not pulled to another CPU.
    pub migration_cost_ns: u64,
}

impl SchedulerTimes {
    /// CFS, Linux's until 6.5, on a machine with so many CPUs: 6, 0.75 and 1 ms, times one more
    /// than log2 of them, up to 8; and 0.5 ms anywhere.
    pub const fn cfs(cpus: usize) -> Self {
        let factor = factor(cpus);
        Self {
            latency_ns: 6_000_000 * factor,
            min_granularity_ns: 750_000 * factor,
            wakeup_granularity_ns: 1_000_000 * factor,
            protected_ns: 0,
            migration_cost_ns: 500_000,
        }
    }

    /// The same with 8 CPUs or more.
    pub const MANY_CPUS: Self = Self::cfs(8);

    /// An approximation of EEVDF, Linux's from 6.6 on: a slice of 0.7 ms (0.75 ms at first), times
    /// one more than log2 of the CPUs, up to 8, within which one that wakes does not preempt.
    /// Eligibility, lag and deadlines are not modelled.
    pub const fn eevdf(cpus: usize) -> Self {
        let slice_ns = 700_000 * factor(cpus);
        Self {
            latency_ns: slice_ns,
            min_granularity_ns: slice_ns,
            wakeup_granularity_ns: 0,
            protected_ns: slice_ns,
            ..Self::cfs(cpus)
        }
    }
}

/// By how much Linux lengthens its scheduler's times on a machine with so many CPUs.
const fn factor(cpus: usize) -> u64 {
    match cpus {
        0 | 1 => 1,
        2..8 => 1 + cpus.ilog2() as u64,
        _ => 4,
    }
}

/// Readers on other CPUs, drawn when an index is looked at rather than simulated one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Readers {
    /// How many there are.
    pub count: u32,
    /// The mean length of a section.
    pub inside_ns: u64,
    /// The mean time between two sections.
    pub outside_ns: u64,
}

impl Readers {
    /// None.
    pub const NONE: Self = Self { count: 0, inside_ns: 0, outside_ns: 1 };
}

/// One reader that blocks inside its section: the case of live patching.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocked {
    /// When it enters.
    pub from_ns: u64,
    /// How long it stays.
    pub for_ns: u64,
}

/// A simulation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Options {
    /// Ticks a second.
    pub hz: u32,
    /// Whether a task is preempted inside the kernel. If not, only in user mode, where it works,
    /// and between two runs of the worker.
    pub preempt: bool,
    /// The delay function.
    pub delay: AnyDelay,
    /// How many grace periods the caller waits for, one after the other.
    pub calls: u32,
    /// Whether they are expedited.
    pub expedited: bool,
    /// What the caller works between two calls, in the mean; half to one and a half of it is drawn.
    pub caller_work_ns: u64,
    /// The caller's section: from where it enters to the request, and from there to where it
    /// leaves.
    pub enqueue_ns: u64,
    /// What a run of the worker costs besides its checks and pauses.
    pub run_ns: u64,
    /// What a check costs: summing an index's counts over all CPUs.
    pub check_ns: u64,
    /// From a wake-up to the first instruction on a CPU that was idle.
    pub wake_ns: u64,
    /// What running the callbacks costs.
    pub callbacks_ns: u64,
    /// How many CPUs there are. All but the caller's and the boot CPU have nothing to do; on a
    /// single one everything runs.
    pub cpus: u32,
    /// Whether a CPU that has nothing to do takes the caller over: at a tick, when it waits for
    /// the CPU that the worker has; and when it wakes, if its CPU has other work then.
    pub balances: bool,
    /// Where the worker runs.
    pub placement: Placement,
    /// The fair scheduler.
    pub scheduler: SchedulerTimes,
    /// Readers on other CPUs.
    pub readers: Readers,
    /// A reader that blocks.
    pub blocked: Option<Blocked>,
    /// The simulation ends here even if calls are left.
    pub limit_ns: u64,
    /// For the draws.
    pub seed: u64,
}

impl Options {
    /// The most calls.
    pub const CALLS_MAX: u32 = 10_000_000;
    /// The most CPUs.
    pub const CPUS_MAX: u32 = 4_096;
    /// The most readers on other CPUs.
    pub const READERS_MAX: u32 = 100_000;

    /// The machine of the 2022 reports: 250 ticks a second, preemptible, 128 CPUs; 8,000 calls.
    /// `delay` is what differs between its runs.
    ///
    /// Two values are fitted: `caller_work_ns` on the loop of 5.18; and `check_ns` (with which a
    /// run that fails takes 29 us) on the four boots whose looks were limited to 100 up to 250. The
    /// scheduler's are Linux's. The others are of the usual size, and change little.
    pub fn reports_of_2022(delay: AnyDelay) -> Self {
        Self {
            hz: 250,
            preempt: true,
            delay,
            calls: 8_000,
            expedited: true,
            caller_work_ns: 345_000,
            enqueue_ns: 1_000,
            run_ns: 4_000,
            check_ns: 5_000,
            wake_ns: 3_000,
            callbacks_ns: 2_000,
            cpus: 128,
            balances: true,
            placement: Placement::WithCaller,
            scheduler: SchedulerTimes::MANY_CPUS,
            readers: Readers::NONE,
            blocked: None,
            limit_ns: 3_600_000_000_000,
            seed: 1,
        }
    }

    /// The length of a jiffy.
    pub fn jiffy_ns(&self) -> u64 {
        1_000_000_000 / u64::from(self.hz.max(1))
    }

    /// Whether this can be simulated.
    ///
    /// # Errors
    /// The first option that cannot be as it is, and why.
    pub fn check(&self) -> Result<(), Impossible> {
        ensure!((10..=10_000).contains(&self.hz), "hz: a kernel has 10 to 10,000 ticks a second");
        ensure!(self.calls != 0, "calls: there is nothing to measure without a call");
        ensure!(
            self.calls <= Self::CALLS_MAX,
            "calls: more than 10,000,000: each one's latency is kept"
        );
        ensure!((1..=Self::CPUS_MAX).contains(&self.cpus), "cpus: a machine has 1 to 4,096 CPUs");
        ensure!(
            self.cpus != 1 || self.placement == Placement::WithCaller,
            "placement: a CPU of its own for the worker takes a second CPU"
        );
        ensure!(
            self.readers.count <= Self::READERS_MAX,
            "readers: more than 100,000: each is drawn at each grace period"
        );
        ensure!(
            self.check_ns != 0,
            "check_ns: a check that takes no time can be made for ever in none"
        );
        ensure!(self.limit_ns != 0, "limit_ns: no time passes");
        let second = 1_000_000_000;
        let times = [
            ("caller_work_ns", self.caller_work_ns),
            ("enqueue_ns", self.enqueue_ns),
            ("run_ns", self.run_ns),
            ("check_ns", self.check_ns),
            ("wake_ns", self.wake_ns),
            ("callbacks_ns", self.callbacks_ns),
            ("readers.inside_ns", self.readers.inside_ns),
            ("readers.outside_ns", self.readers.outside_ns),
            ("scheduler.latency_ns", self.scheduler.latency_ns),
            ("scheduler.min_granularity_ns", self.scheduler.min_granularity_ns),
            ("scheduler.wakeup_granularity_ns", self.scheduler.wakeup_granularity_ns),
            ("scheduler.protected_ns", self.scheduler.protected_ns),
            ("scheduler.migration_cost_ns", self.scheduler.migration_cost_ns),
        ];
        for (option, time) in times {
            ensure!(
                time <= 100 * second,
                "{option}: more than 100 seconds is not what this measures"
            );
        }
        let Readers { count, inside_ns, outside_ns } = self.readers;
        ensure!(
            count == 0 || inside_ns + outside_ns != 0,
            "readers: a reader is somewhere for some time"
        );
        Ok(())
    }
}
