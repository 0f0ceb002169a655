//! Delay functions: how long the worker waits before it looks at an index again.
//!
//! The regression of 2022, its first fixes and its last one are all delay functions; the machine is
//! the same in all of them. [`Published`] has the kernel's variants, as values with all parameters;
//! [`AdaptiveDelay`](super::AdaptiveDelay) is ours. Pure functions of parameters, a count and the
//! situation.

/// How long to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// So many ticks of the timer wheel; 0 is no wait, only a requeue. (A wheel that rounds up
    /// makes at least one tick more of it.)
    Jiffies(u32),
    /// So many microseconds, asleep, by a high-resolution timer.
    Microseconds(u32),
}

impl Wait {
    /// No wait.
    pub const NONE: Self = Self::Jiffies(0);

    /// Whether it is no wait.
    pub const fn is_none(self) -> bool {
        matches!(self, Self::Jiffies(0) | Self::Microseconds(0))
    }
}

/// What a delay function may look at; a grace period is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Situation {
    /// Somebody in a hurry waits for this grace period or a later one.
    pub is_expedited: bool,
    /// How often the tick came since it began.
    pub age_jiffies: u32,
}

/// When to scan again. The machine keeps `count` for it, and sets it to 0 when a grace period
/// begins, at the flip, and when the second scan succeeds. Implementations keep it bounded, so that
/// there are finitely many states.
pub trait Delay: Clone + core::fmt::Debug + Eq + core::hash::Hash {
    /// Whether a run that has used up its checks may make one more.
    fn extra_check(&self, count: &mut u32, now: Situation) -> bool;

    /// Whether [`extra_check`](Self::extra_check) is asked after each failed check, rather than
    /// once before the first of a run.
    fn asks_after_each_check(&self) -> bool;

    /// How long to spin between two checks of a run; `is_last` before the extra one.
    fn spin_us(&self, is_last: bool) -> u32;

    /// How long the worker waits before the first run of a grace period.
    fn first_wait(&self, count: &mut u32, now: Situation) -> Wait;

    /// How long the worker waits after a run.
    fn wait(&self, count: &mut u32, now: Situation) -> Wait;

    /// How long the callbacks of a grace period that is about to end wait, in jiffies.
    fn callback_delay_jiffies(&self, count: &mut u32, now: Situation) -> u32;

    /// Runs without a wait within one jiffy, at most; then one of a jiffy is made.
    fn runs_per_jiffy_max(&self) -> u32;
}

/// From when on a grace period's age adds to the delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Age {
    /// It never does.
    Ignored,
    /// From the first tick: a grace period that began right before it counts as a jiffy old.
    FromFirstTick,
    /// From the second tick: past one full jiffy.
    PastFullJiffy,
}

/// How long callbacks wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CallbackDelay {
    /// A jiffy, if the worker would wait at all.
    LikeWorker,
    /// A jiffy, unless the grace period is expedited.
    UnlessExpedited,
}

/// The kernel's delay functions (`srcu_get_delay()` and its callers, `kernel/rcu/srcutree.c`), from
/// Linux 5.18 to today.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Published {
    /// What the worker waits if no thread is in a hurry, before its age is added (`SRCU_INTERVAL`).
    pub interval_jiffies: u32,
    /// From when on the age adds to it.
    pub age: Age,
    /// The longest wait (`SRCU_MAX_INTERVAL`).
    pub interval_jiffies_max: u32,
    /// How often a phase of an expedited grace period may get "no wait" (`SRCU_MAX_NODELAY_PHASE`);
    /// `None` for as often as it likes.
    pub no_delay_per_phase_max: Option<u32>,
    /// Whether each failed check asks, and so counts, or a run only once.
    pub asks_after_each_check: bool,
    /// How long callbacks wait.
    pub callbacks: CallbackDelay,
    /// Runs without a wait within one jiffy, at most (`SRCU_MAX_NODELAY`); `None` for any number.
    pub runs_per_jiffy_max: Option<u32>,
    /// The pause between two checks of a run (`SRCU_RETRY_CHECK_DELAY`).
    pub retry_us: u32,
    /// The pause before the extra check; `retry_us` in all that was released, longer in proposals.
    pub last_retry_us: u32,
}

impl Published {
    /// Linux 5.18: an expedited grace period never waits.
    pub const V5_18: Self = Self {
        interval_jiffies: 1,
        age: Age::Ignored,
        interval_jiffies_max: 1,
        no_delay_per_phase_max: None,
        asks_after_each_check: true,
        callbacks: CallbackDelay::LikeWorker,
        runs_per_jiffy_max: None,
        retry_us: 5,
        last_retry_us: 5,
    };

    /// Linux 5.19-rc1 (commit 282d8998e997): one run a phase without a wait, then a jiffy and the
    /// age.
    pub const V5_19_RC1: Self = Self {
        age: Age::FromFirstTick,
        interval_jiffies_max: 10,
        no_delay_per_phase_max: Some(1),
        runs_per_jiffy_max: Some(100),
        ..Self::V5_18
    };

    /// The first fix that was proposed: three in place of one, and the age from the second tick on.
    pub const FIRST_DIFF: Self =
        Self { age: Age::PastFullJiffy, no_delay_per_phase_max: Some(3), ..Self::V5_19_RC1 };

    /// The experiment that showed where the time went: without the block that counts.
    pub const BLOCK_REMOVED: Self = Self { no_delay_per_phase_max: None, ..Self::FIRST_DIFF };

    /// What was released with 5.19 (commit 4f2bfd9494a0): about a jiffy of looking a phase, counted
    /// once a run; expedited callbacks do not wait. `hz` is taken as at least 1.
    pub const fn final_at(hz: u32) -> Self {
        let hz = if hz == 0 { 1 } else { hz };
        let looks = 2_000_000 / hz / 5;
        let looks = if looks < 3 { 3 } else { looks };
        let looks = if looks > 1_000 { 1_000 } else { looks };
        Self {
            no_delay_per_phase_max: Some(looks),
            asks_after_each_check: false,
            callbacks: CallbackDelay::UnlessExpedited,
            runs_per_jiffy_max: Some(if looks > 100 { looks } else { 100 }),
            ..Self::FIRST_DIFF
        }
    }

    fn jiffies(&self, count: &mut u32, now: Situation) -> u32 {
        let interval = if now.is_expedited { 0 } else { self.interval_jiffies };
        let added = match self.age {
            Age::Ignored => 0,
            Age::FromFirstTick => now.age_jiffies,
            Age::PastFullJiffy => now.age_jiffies.saturating_sub(1),
        };
        let mut jiffies = interval.saturating_add(added);
        if let Some(limit) = self.no_delay_per_phase_max
            && jiffies == 0
        {
            if *count <= limit {
                *count = count.saturating_add(1);
            }
            jiffies = u32::from(*count > limit);
        }
        jiffies.min(self.interval_jiffies_max)
    }
}

impl Delay for Published {
    fn extra_check(&self, count: &mut u32, now: Situation) -> bool {
        self.jiffies(count, now) == 0
    }

    fn asks_after_each_check(&self) -> bool {
        self.asks_after_each_check
    }

    fn spin_us(&self, is_last: bool) -> u32 {
        if is_last { self.last_retry_us } else { self.retry_us }
    }

    fn first_wait(&self, count: &mut u32, now: Situation) -> Wait {
        Wait::Jiffies(self.jiffies(count, now).min(1))
    }

    fn wait(&self, count: &mut u32, now: Situation) -> Wait {
        Wait::Jiffies(self.jiffies(count, now))
    }

    fn callback_delay_jiffies(&self, count: &mut u32, now: Situation) -> u32 {
        match self.callbacks {
            CallbackDelay::LikeWorker => self.jiffies(count, now).min(1),
            CallbackDelay::UnlessExpedited => u32::from(!now.is_expedited),
        }
    }

    fn runs_per_jiffy_max(&self) -> u32 {
        self.runs_per_jiffy_max.unwrap_or(u32::MAX)
    }
}
