//! What the engine `on-demand` decides, and from what: pure functions of plain values.

use grace::Urgency;

/// How the engine is tuned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Parameters {
    /// How long a grace period in the background is put off, so that callbacks gather. At least 1.
    pub gather_jiffies: u32,
    /// Between scans, if no caller waits without pause. At least 1; and a quarter of the age more
    /// while no caller is forced.
    pub look_jiffies: u32,
    /// The same two when over budget.
    pub back_off_jiffies: u32,
    /// Holdouts of a grace period in the background are not forced before it is so old.
    pub force_after_jiffies: u32,
    /// How many callbacks are run at once, at least, if there are as many.
    pub callbacks_at_once_min: u64,
    /// Of those that are ready, 1 / 2^this are run at once if that is more.
    pub callbacks_at_once_shift: u32,
    /// Callbacks that may wait. From three quarters of it on, grace periods are expedited.
    pub backlog_objects_max: u64,
    /// Bytes that these may hold; the same.
    pub backlog_bytes_max: u64,
}

impl Parameters {
    /// One jiffy to gather and between looks, which is what rcu_ltimer takes; 8 when over budget,
    /// so that looks cost an eighth. 25 to force: 100 ms at 250 Hz, the kernel's own measure. A
    /// million objects, 256 MiB.
    ///
    /// 500 callbacks, or 1/32 of them: entering a softirq costs about as much as a callback. The
    /// kernel's 10, and 1/128, cost a tenth of the callbacks' own time; these cost less than a
    /// hundredth, and take some tens of microseconds. (A driver can let others in within
    /// [`Host::invoke`].)
    ///
    /// [`Host::invoke`]: crate::engine::Host::invoke
    pub const DEFAULT: Self = Self {
        gather_jiffies: 1,
        look_jiffies: 1,
        back_off_jiffies: 8,
        force_after_jiffies: 25,
        callbacks_at_once_min: 500,
        callbacks_at_once_shift: 5,
        backlog_objects_max: 1 << 20,
        backlog_bytes_max: 256 << 20,
    };
}

impl Default for Parameters {
    fn default() -> Self {
        Self::DEFAULT
    }
}

/// What is known when a decision is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Demand {
    /// The greatest of those who wait.
    pub urgency: Urgency,
    /// The backlog has reached three quarters of a limit.
    pub is_near_limit: bool,
    /// The engine has lately had more than its share of CPU time, for work in the background.
    pub is_over_budget: bool,
    /// The age of the grace period in progress; 0 if there is none.
    pub age_jiffies: u32,
}

impl Demand {
    /// Whether holdouts are forced, and nothing is put off.
    pub const fn is_pressing(&self) -> bool {
        // A caller that waits pays for it: the budget is for work in the background.
        self.is_near_limit || !matches!(self.urgency, Urgency::Background)
    }
}

/// When a grace period begins that somebody needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Begin {
    /// At once.
    Now,
    /// So many jiffies from now, unless the demand grows.
    InJiffies(u32),
}

/// What is done while holdouts are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScanAgain {
    /// Force those that have not been.
    pub forces: bool,
    /// Scan again in so many jiffies; 0: as soon as may be.
    pub pause_jiffies: u32,
}

/// When to begin.
pub const fn begin(demand: &Demand, parameters: &Parameters) -> Begin {
    if demand.is_pressing() {
        return Begin::Now;
    }
    let jiffies = match demand.is_over_budget {
        true => parameters.back_off_jiffies,
        false => parameters.gather_jiffies,
    };
    if jiffies == 0 { Begin::Now } else { Begin::InJiffies(jiffies) }
}

/// Whether to force the holdouts, and when to look at them again.
pub const fn scan_again(demand: &Demand, parameters: &Parameters) -> ScanAgain {
    let forces = demand.is_pressing() || demand.age_jiffies >= parameters.force_after_jiffies;
    let pause_jiffies = match demand.urgency {
        Urgency::Expedited => 0,
        _ if demand.is_pressing() => at_least_1(parameters.look_jiffies),
        _ if demand.is_over_budget => at_least_1(parameters.back_off_jiffies),
        // What has taken so long takes a little longer.
        _ => at_least_1(parameters.look_jiffies).saturating_add(demand.age_jiffies / 4),
    };
    ScanAgain { forces, pause_jiffies }
}

/// How many callbacks of `ready` to run before others get the CPU. `urgency` is the greatest of
/// theirs: they run in the order they came, so a caller that waits for one waits for those before
/// it.
pub const fn callbacks_at_once(
    ready: u64,
    urgency: Urgency,
    is_near_limit: bool,
    parameters: &Parameters,
) -> u64 {
    if is_near_limit || !matches!(urgency, Urgency::Background) {
        return ready;
    }
    let share = match ready.checked_shr(parameters.callbacks_at_once_shift) {
        Some(share) => share,
        None => 0,
    };
    let least =
        if parameters.callbacks_at_once_min > 1 { parameters.callbacks_at_once_min } else { 1 };
    let limit = if share > least { share } else { least };
    if ready < limit { ready } else { limit }
}

const fn at_least_1(jiffies: u32) -> u32 {
    if jiffies == 0 { 1 } else { jiffies }
}
