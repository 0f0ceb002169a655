//! The options of the simulation, and which are refused.

use grace::batch;
use grace::limit::Amount;
use grace::policy::{Adaptive, AnyPolicy, Budget, Poll, Tick, Token};

use super::Costs;
use crate::events::Time;
use crate::setup::{Impossible, MILLISECOND, SECOND, ensure};
use crate::srcu::SchedulerTimes;

/// The most threads.
pub const THREADS_MAX: u32 = 100_000;
/// The most CPUs.
pub const CPUS_MAX: usize = 4_096;
/// The longest run: an hour.
const DURATION_MAX: Time = 3_600 * SECOND;

/// Whose grace periods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// The library's, with this policy; `budget` is what the worker may spend on them.
    Library {
        /// The engine's policy.
        policy: AnyPolicy,
        /// None: as much as it takes.
        budget: Option<Budget>,
    },
    /// liburcu's (the flavour `memb`).
    Liburcu,
}

impl Algorithm {
    /// The names that [`named`](Self::named) knows, the library's default first.
    pub const NAMES: [&'static str; 5] = ["adaptive", "poll", "tick", "token", "liburcu"];

    /// The algorithm of this name, with the library's defaults.
    ///
    /// ```
    /// use simulate::ours::Algorithm;
    ///
    /// assert!(Algorithm::NAMES.iter().all(|name| Algorithm::named(name).is_some()));
    /// assert_eq!(Algorithm::named("fast"), None);
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        let (policy, budget) = match name {
            "adaptive" => (AnyPolicy::Adaptive(Adaptive::DEFAULT), Some(Budget::DEFAULT)),
            "poll" => (AnyPolicy::Poll(Poll::DEFAULT), None),
            "tick" => (AnyPolicy::Tick(Tick), None),
            "token" => (AnyPolicy::Token(Token::DEFAULT), None),
            "liburcu" => return Some(Self::Liburcu),
            _ => return None,
        };
        Some(Self::Library { policy, budget })
    }
}

/// What a thread does, for ever. Times in nanoseconds; those that are means are exponentially
/// distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// It is registered, and asleep.
    Idle,
    /// It reads, and sleeps between two spells of it.
    Reads {
        /// Mean length of a section.
        section_ns: Time,
        /// Mean time between two sections.
        gap_ns: Time,
        /// Mean length of a spell, in running time; 0: it never sleeps.
        run_ns: Time,
        /// Mean time asleep.
        sleep_ns: Time,
    },
    /// A QSBR reader: an event loop with a quiescent state in each turn. Offline while it sleeps.
    Qsbr {
        /// Mean time from one quiescent state to the next.
        turn_ns: Time,
        /// Mean length of a spell, in running time; 0: it never sleeps.
        run_ns: Time,
        /// Mean time asleep.
        sleep_ns: Time,
    },
    /// It blocks in its section: the thread sleeps inside.
    Blocks {
        /// Mean length of a section.
        section_ns: Time,
        /// Mean time between two of them.
        apart_ns: Time,
    },
    /// It starts, registers, reads, unregisters and ends; another one follows.
    Comes {
        /// Mean length of a section.
        section_ns: Time,
        /// Mean time between two sections.
        gap_ns: Time,
        /// Mean length of a thread's life, in running time.
        life_ns: Time,
        /// Mean time until the next one.
        apart_ns: Time,
    },
    /// It computes, updates and waits for a grace period, in turn.
    Waits {
        /// Mean time from one to the next.
        work_ns: Time,
        /// How many of a million waits are expedited.
        expedited_ppm: u32,
        /// Whether it sleeps between two updates instead of computing.
        sleeps: bool,
        /// Whether it has a reader, which is in no section when it waits.
        reads: bool,
    },
    /// It computes, updates and retires what it has replaced.
    Retires {
        /// Time from one update to the next.
        work_ns: Time,
        /// What an object is counted as.
        bytes: u64,
        /// Updates in a burst; 0: without end.
        burst: u32,
        /// Mean time asleep after a burst.
        sleep_ns: Time,
    },
    /// The same with closures, which the worker runs.
    Calls {
        /// Time from one update to the next.
        work_ns: Time,
        /// What a closure is counted as.
        bytes: u64,
        /// Updates in a burst; 0: without end.
        burst: u32,
        /// Mean time asleep after a burst.
        sleep_ns: Time,
    },
}

/// So many threads of one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group {
    /// How many.
    pub count: u32,
    /// What each of them does.
    pub role: Role,
}

/// A simulation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// What the random draws begin with.
    pub seed: u64,
    /// CPUs, 1 to 4,096.
    pub cpus: usize,
    /// The scheduler's ticks a second, 100 to 1,000.
    pub hz: u32,
    /// The scheduler's times; those of Linux today on so many CPUs without.
    pub scheduler: Option<SchedulerTimes>,
    /// How long it runs before anything is counted.
    pub warm_up: Time,
    /// For how long things are counted.
    pub duration: Time,
    /// Whose grace periods.
    pub algorithm: Algorithm,
    /// What may wait; both numbers at least 1.
    pub limit: Amount,
    /// How long callbacks wait for company.
    pub lazy_ns: Time,
    /// Callbacks that are run in one go at least.
    pub run_min: u64,
    /// After how long in one go a thread sees to something else.
    pub run_ns: Time,
    /// What things cost.
    pub costs: Costs,
    /// The threads.
    pub threads: Vec<Group>,
    /// Whether each end of a grace period is checked: no reader may be in a section that had begun
    /// before it. Costs a look at each reader, and other draws.
    pub check: bool,
}

impl Options {
    /// A second on four CPUs after a tenth of one, with the library's defaults and a limit of
    /// 65,536 objects and 16 MiB.
    pub fn new(algorithm: Algorithm, threads: Vec<Group>) -> Self {
        Self {
            seed: 1,
            cpus: 4,
            hz: 250,
            scheduler: None,
            warm_up: 100 * MILLISECOND,
            duration: SECOND,
            algorithm,
            limit: Amount { objects: 65_536, bytes: 16 << 20 },
            lazy_ns: batch::LAZY_NS,
            run_min: batch::RUN_MIN,
            run_ns: batch::RUN_NS,
            costs: Costs::modern(),
            threads,
            check: false,
        }
    }

    pub(super) fn scheduler(&self) -> SchedulerTimes {
        self.scheduler.unwrap_or_else(|| SchedulerTimes::eevdf(self.cpus))
    }

    /// Whether it can be simulated.
    ///
    /// # Errors
    /// The reason why not.
    pub fn check(&self) -> Result<(), Impossible> {
        let (cpus, hz) = (self.cpus, self.hz);
        let threads = self.threads.iter().map(|group| u64::from(group.count)).sum::<u64>();
        let length = self.duration.saturating_add(self.warm_up);
        let is_some = self.limit.objects != 0 && self.limit.bytes != 0 && self.run_min != 0;
        ensure!((1..=CPUS_MAX).contains(&cpus), "cpus = {cpus}: 1 to {CPUS_MAX}");
        ensure!((100..=1_000).contains(&hz), "hz = {hz}: 100 to 1000");
        ensure!(
            self.duration != 0 && length <= DURATION_MAX,
            "a run counts for something, and takes an hour at most"
        );
        ensure!(
            (1..=u64::from(THREADS_MAX)).contains(&threads),
            "{threads} threads: 1 to {THREADS_MAX}"
        );
        ensure!(is_some, "the limit and run_min are at least 1");
        self.threads.iter().try_for_each(|group| group.role.check())
    }
}

impl Role {
    /// Refuses a thread for which time would stand still, or whose draws would overflow.
    fn check(&self) -> Result<(), Impossible> {
        let (times, least): (&[Time], Time) = match self {
            Self::Idle => (&[], 1),
            Self::Reads { section_ns, gap_ns, run_ns, sleep_ns } => {
                (&[*section_ns, *gap_ns, *run_ns, *sleep_ns], (*section_ns).min(*gap_ns))
            }
            Self::Qsbr { turn_ns, run_ns, sleep_ns } => (&[*turn_ns, *run_ns, *sleep_ns], *turn_ns),
            Self::Blocks { section_ns, apart_ns } => {
                (&[*section_ns, *apart_ns], (*section_ns).min(*apart_ns))
            }
            Self::Comes { section_ns, gap_ns, life_ns, apart_ns } => {
                let least = (*section_ns).min(*gap_ns).min(*life_ns);
                (&[*section_ns, *gap_ns, *life_ns, *apart_ns], least)
            }
            Self::Waits { work_ns, .. } => (&[*work_ns], 1),
            Self::Retires { work_ns, sleep_ns, .. } | Self::Calls { work_ns, sleep_ns, .. } => {
                (&[*work_ns, *sleep_ns], *work_ns)
            }
        };
        ensure!(least != 0, "sections, gaps, turns, lives and the work of an update take time");
        ensure!(
            times.iter().all(|time| *time <= DURATION_MAX),
            "no time of a thread is longer than an hour"
        );
        Ok(())
    }
}
