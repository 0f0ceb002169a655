//! The default policy: by demand, within a budget.
//!
//! rcu_poll has the better latency, rcu_ltimer the smaller overhead. Which is preferable depends on
//! whether a thread waits. So background work is done at the tick, as under [`Tick`](super::Tick).
//! Waiting threads and large backlogs are served as under [`Poll`](super::Poll), at their own cost.
//! Background work has a budget of CPU time, which only expedited demand may exceed.

use super::{Begin, Hint, Policy, Urgency};

/// Rcu_poll's latency when a thread waits, rcu_ltimer's overhead when none does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Adaptive {
    /// Scans before sleeping under normal urgency.
    pub looks_max: u32,
    /// Scans before sleeping under expedited urgency.
    pub looks_max_expedited: u32,
}

impl Adaptive {
    /// A few microseconds of scanning: longer than the common section, shorter than two context
    /// switches, which is what sleeping would cost. Ten times that under expedited urgency.
    pub const DEFAULT: Self = Self { looks_max: 200, looks_max_expedited: 2_000 };
}

impl Policy for Adaptive {
    fn begin(&self, urgency: Urgency) -> Begin {
        if urgency == Urgency::Background { Begin::AtTick } else { Begin::Now }
    }

    fn look_again(&self, looks: u32, urgency: Urgency) -> Hint {
        let looks_max = match urgency {
            Urgency::Background => return Hint::Tick,
            Urgency::Normal => self.looks_max,
            Urgency::Expedited => self.looks_max_expedited,
        };
        if looks < looks_max { Hint::Again } else { Hint::Sleep }
    }
}

/// The share of a CPU that background work on grace periods may take.
///
/// The driver keeps the time: it measures what a turn of work cost, and asks how long to rest.
///
/// ```
/// use grace::policy::Budget;
///
/// let budget = Budget::from_ppm(10_000); // 1 %
/// let tick_ns = 10_000_000;
/// assert_eq!(budget.rest_ns(20_000, tick_ns), tick_ns); // cheap: the tick is pause enough
/// assert_eq!(budget.rest_ns(500_000, tick_ns), 49_500_000); // 0.5 ms is 1 % of 50 ms
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Budget {
    share_ppm: u32,
}

impl Budget {
    /// One per cent of a CPU.
    pub const DEFAULT: Self = Self::from_ppm(10_000);

    /// A share in parts of a million, clamped to 1..=1,000,000 (a whole CPU: no limit).
    pub const fn from_ppm(share_ppm: u32) -> Self {
        let share_ppm = match share_ppm {
            0 => 1,
            1..=1_000_000 => share_ppm,
            _ => 1_000_000,
        };
        Self { share_ppm }
    }

    /// How long to rest after a turn of work that took `spent_ns` of CPU time: at least a tick, and
    /// long enough that the turn is at most the share of turn and rest together.
    pub const fn rest_ns(self, spent_ns: u64, tick_ns: u64) -> u64 {
        let share = self.share_ppm as u128;
        let rest = (spent_ns as u128 * (1_000_000 - share)).div_ceil(share);
        let rest = if rest > u64::MAX as u128 { u64::MAX } else { rest as u64 };
        if rest > tick_ns { rest } else { tick_ns }
    }
}
