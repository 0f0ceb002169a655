//! The policy of the engine `poll`.

use super::{Begin, Hint, Policy, Urgency};

/// Start at once, scan again without pause for a number of looks, then have the holdouts report,
/// whichever thread wants the grace period, and however much.
///
/// After rcu_poll (Arcangeli, Cao, McKenney, Sarma, FREENIX 2003), which forces the holdouts to
/// reschedule and polls until they have. User space cannot force a thread, so after
/// `looks_max` looks the waiter sleeps and the last holdout wakes it. Lowest latency; the CPU
/// time it costs grows with the grace periods and not with the demand for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Poll {
    /// Looks before sleeping.
    pub looks_max: u32,
}

impl Poll {
    /// Some tens of microseconds of looking.
    pub const DEFAULT: Self = Self { looks_max: 2_000 };
}

impl Policy for Poll {
    fn begin(&self, _: Urgency) -> Begin {
        Begin::Now
    }

    fn look_again(&self, looks: u32, _: Urgency) -> Hint {
        if looks < self.looks_max { Hint::Again } else { Hint::Sleep }
    }
}
