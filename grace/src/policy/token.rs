//! The policy of the engine `token`, where readers report.

use super::{Begin, Hint, Policy, Urgency};

/// Start at once, and then look for the token now and then: the readers bring it along.
///
/// After rcu_sched (Linux 2.5; FREENIX 2003). A few looks without pause find a token that runs
/// through a short ring; after that one look at each tick is enough to pass over readers that have
/// gone offline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    /// Looks before waiting for the tick, when somebody waits.
    pub looks_max: u32,
}

impl Token {
    /// A few microseconds of looking.
    pub const DEFAULT: Self = Self { looks_max: 200 };
}

impl Policy for Token {
    fn begin(&self, _: Urgency) -> Begin {
        Begin::Now
    }

    fn look_again(&self, looks: u32, urgency: Urgency) -> Hint {
        if looks < self.looks_max && urgency > Urgency::Background {
            Hint::Again
        } else {
            Hint::Tick
        }
    }
}
