//! The simulated machine, and the duration of a run.

use crate::cost::Costs;
use crate::events::Time;

/// Nanoseconds in a microsecond.
pub const MICROSECOND: Time = 1_000;
/// Nanoseconds in a millisecond.
pub const MILLISECOND: Time = 1_000_000;
/// Nanoseconds in a second.
pub const SECOND: Time = 1_000_000_000;

/// The machine that is simulated, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setup {
    /// CPUs, 1 to 4,096.
    pub cpus: usize,
    /// Ticks a second, 100 to 1,000.
    pub hz: u32,
    /// Whether the tick is off on a CPU that is idle, or runs one program in user mode.
    pub tickless: bool,
    /// Whether kernel code can be preempted where it is in no read-side critical section. Then
    /// `cond_resched()` does nothing.
    pub preemptible: bool,
    /// What the random draws begin with.
    pub seed: u64,
    /// How long the machine runs before anything is counted, in nanoseconds.
    pub warm_up: Time,
    /// For how long things are counted, in nanoseconds.
    pub duration: Time,
    /// What things cost.
    pub costs: Costs,
    /// The CPU time that an engine may use where no task is in a hurry, in millionths of all.
    pub budget_ppm: u32,
    /// How long ksoftirqd and the task on its CPU run in turn, in nanoseconds.
    pub slice: Time,
    /// How often a softirq that raises itself is run before ksoftirqd takes over: 10 today
    /// (`MAX_SOFTIRQ_RESTART`), 1 in kernels of 2003.
    pub softirq_runs: u32,
    /// What ksoftirqd gets of a CPU that has a task too, in per cent of what the task gets: 100
    /// where it is as important as the task, as today; less where it is nice, and waits for the end
    /// of the task's slice too.
    pub ksoftirqd_percent: u32,
    /// After how long an idle CPU passes through its scheduler if callbacks are waiting anywhere,
    /// and so on, in nanoseconds; 0 if it does not. The idle loop of rcu_sched did.
    pub idle_look_every: Time,
    /// Mean time from one short run of a kernel thread to the next on a CPU that is busy, in
    /// nanoseconds; 0 if there are none. What lets a task that never sleeps pass through the
    /// scheduler.
    pub background_every: Time,
    /// How many grace periods the timeline shows, from the end of the warm-up on.
    pub timeline: usize,
}

/// Why a setup cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Impossible(pub(crate) String);

impl std::fmt::Display for Impossible {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for Impossible {}

/// Unless this is so, refuses what cannot be simulated, with the reason.
macro_rules! ensure {
    ($is_possible:expr, $($reason:tt)+) => {
        if !$is_possible {
            return Err($crate::setup::Impossible(format!($($reason)+)));
        }
    };
}
pub(crate) use ensure;

impl Default for Setup {
    /// Four CPUs of today, 250 Hz, one second after a tenth of a second.
    fn default() -> Self {
        Self {
            cpus: 4,
            hz: 250,
            tickless: true,
            preemptible: false,
            seed: 1,
            warm_up: SECOND / 10,
            duration: SECOND,
            costs: Costs::modern(),
            budget_ppm: 10_000,
            slice: 3 * MILLISECOND,
            softirq_runs: 10,
            ksoftirqd_percent: 100,
            idle_look_every: 0,
            background_every: SECOND,
            timeline: 32,
        }
    }
}

impl Setup {
    /// The largest number of CPUs.
    pub const CPUS_MAX: usize = 4_096;
    /// The longest run, warm-up included: one hour.
    pub const LENGTH_MAX: Time = 3_600 * SECOND;
    /// The longest timeline.
    pub const TIMELINE_MAX: usize = 10_000;

    /// Whether it can be simulated.
    ///
    /// # Errors
    /// The reason, in words, if it cannot.
    pub fn check(&self) -> Result<(), Impossible> {
        let Self { cpus, hz, budget_ppm, slice, softirq_runs, ksoftirqd_percent, .. } = *self;
        let Self { idle_look_every, background_every, timeline, .. } = *self;
        let (length, hour) = (self.warm_up.saturating_add(self.duration), Self::LENGTH_MAX);
        ensure!(cpus != 0, "0 CPUs: there must be at least 1");
        ensure!(cpus <= Self::CPUS_MAX, "{cpus} CPUs: at most {} fit", Self::CPUS_MAX);
        ensure!((100..=1_000).contains(&hz), "{hz} ticks a second: kernels have 100 to 1000");
        ensure!(self.duration != 0, "0 ns: a run must last");
        ensure!(length <= hour, "{length} ns with the warm-up: at most {hour} (an hour)");
        ensure!(budget_ppm <= 1_000_000, "a budget of {budget_ppm} ppm: there are 1000000");
        ensure!(
            (100 * MICROSECOND..=SECOND).contains(&slice),
            "a slice of {slice} ns: 100000 to 1000000000"
        );
        ensure!(
            (1..=1_000).contains(&softirq_runs),
            "{softirq_runs} runs of a softirq in a row: 1 to 1000"
        );
        ensure!(
            (1..=100).contains(&ksoftirqd_percent),
            "ksoftirqd with {ksoftirqd_percent} % of a task's share: 1 to 100"
        );
        ensure!(
            idle_look_every == 0 || (MICROSECOND..=hour).contains(&idle_look_every),
            "a look of the idle loop every {idle_look_every} ns: 0 for none, or 1000 to {hour} \
             (an hour)"
        );
        ensure!(
            background_every == 0 || (10 * MICROSECOND..=hour).contains(&background_every),
            "a kernel thread every {background_every} ns: 0 for none, or 10000 to {hour} (an hour)"
        );
        let most = Self::TIMELINE_MAX;
        ensure!(timeline <= most, "a timeline of {timeline}: at most {most}");
        Ok(())
    }

    /// From tick to tick, in nanoseconds.
    pub const fn jiffy(&self) -> Time {
        SECOND / self.hz as Time
    }

    /// When the run ends.
    pub const fn end(&self) -> Time {
        self.warm_up + self.duration
    }
}
