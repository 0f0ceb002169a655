//! The policy of the engine `tick`.

use super::{Begin, Hint, Policy, Urgency};

/// Everything on the tick: start at one, look once at each, never force and never spin.
///
/// After rcu_ltimer (Linux 2.5; FREENIX 2003), whose grace periods cost least and take longest. One
/// tick until it starts, and one for each time that holdouts are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tick;

impl Policy for Tick {
    fn begin(&self, _: Urgency) -> Begin {
        Begin::AtTick
    }

    fn look_again(&self, _: u32, _: Urgency) -> Hint {
        Hint::Tick
    }
}
