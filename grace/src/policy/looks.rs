//! How often the driver has scanned in a pass, and which scans it is spared.
//!
//! An error here makes it scan too often or sleep too early: it scans once more after each sleep.

use super::{Hint, Policy, Urgency};

/// Passes in a row that come to a sleep before the next ones are spared scans: one may be chance, a
/// reader that has lost its CPU.
const PROBES: u32 = 4;

/// After so many passes in a row that sleep, [`PROBES`] of them are spared none again, to find out
/// whether that is still so.
const PROBE_EVERY: u32 = 64;

/// Scans of a pass.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Looks {
    /// Those that found holdouts, and those that were spared.
    count: u32,
    /// Passes in a row that have come to a sleep, modulo [`PROBE_EVERY`].
    slept: u32,
}

impl Looks {
    pub(crate) const NONE: Self = Self { count: 0, slept: 0 };

    /// What to do before the next scan.
    pub(crate) fn hint(&self, policy: &impl Policy, urgency: Urgency) -> Hint {
        policy.look_again(self.count, urgency)
    }

    /// One more has found holdouts.
    pub(crate) fn found_holdouts(&mut self) {
        self.count = self.count.saturating_add(1);
    }

    /// A pass begins. If the one before would have slept next, and so have several, most scans of
    /// this one are spared.
    pub(crate) fn begin_pass(&mut self, policy: &impl Policy, urgency: Urgency) {
        let slept = self.hint(policy, urgency) == Hint::Sleep;
        // None of fewer than eight: so small models have no more states than before.
        let spared = if slept { self.count / 8 * 7 } else { 0 };
        self.slept = if spared == 0 { 0 } else { (self.slept + 1) % PROBE_EVERY };
        self.count = if self.slept < PROBES { 0 } else { spared };
    }
}
