//! When a driver counts as stalled, so that a waiter [takes its place](super::handover).
//!
//! A waiter sleeps on `turn` for its patience, which [`grace::handover`] decides: it checks the
//! driver at doubling intervals from 50 µs up to 0.8 s, about 15 times in a grace period of one
//! second. A driver that stalls after a long wait for readers at most doubles that wait for the
//! others. A driver that naps for a known time is given that time. A driver that sleeps until the
//! last holdout wakes it has stalled if no holdout is left and it does not run.
//!
//! An error here has a waiter take over too early, which fences and scans once more, or too late.

use std::time::Duration;

use grace::handover::PassersPatience;

use super::{Driver, GracePeriods, Locked, Me, Until};
use crate::os::clock::ns;

/// What the driver does without the machine's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Away {
    /// The least time that it takes.
    pub(crate) least_ns: u64,
    /// Whether it then sleeps until readers leave.
    pub(super) sleeps: bool,
}

impl Away {
    /// It fences, scans or spins.
    pub(crate) const WORKS: Self = Self { least_ns: 0, sleeps: false };

    /// It naps for `nap`.
    pub(crate) fn naps(nap: Duration) -> Self {
        Self { least_ns: ns(nap), sleeps: false }
    }

    /// It naps for `nap`, then sleeps until readers leave.
    pub(crate) fn sleeps(nap: Duration) -> Self {
        Self { sleeps: true, ..Self::naps(nap) }
    }
}

/// What is known of the current driver, under the machine's lock.
#[derive(Debug)]
pub(crate) struct Conduct {
    pub(crate) away: Away,
    /// How often drivers have reported a step, or taken over.
    pub(crate) steps: u64,
    /// Superseded drivers that have not come back.
    pub(crate) superseded: u32,
    /// The patience of callers of `advance` that find a driver at work.
    passers: PassersPatience,
}

impl Conduct {
    pub(crate) const NEW: Self =
        Self { away: Away::WORKS, steps: 0, superseded: 0, passers: PassersPatience::NEW };
}

/// How long a waiter sees no progress before it takes over.
#[derive(Debug)]
pub(crate) struct Patience {
    of_waiter: grace::handover::Patience,
    /// Loom has no clock: how many more times it takes over when it finds a driver at work.
    #[cfg(loom)]
    pub(crate) take_overs: u32,
}

impl Patience {
    pub(crate) const NEW: Self = Self {
        of_waiter: grace::handover::Patience::NEW,
        #[cfg(loom)]
        take_overs: 0,
    };

    /// No patience until it has taken over `take_overs` times.
    #[cfg(loom)]
    pub(crate) const fn none(take_overs: u32) -> Self {
        Self { take_overs, ..Self::NEW }
    }

    /// How long the waiter is still to sleep before it checks the driver.
    pub(super) fn left(&mut self, state: &Locked<'_>) -> Duration {
        let (steps, ended) = (state.conduct.steps, state.machine().sequence().ended());
        let least_ns = state.conduct.away.least_ns;
        Duration::from_nanos(self.of_waiter.left_ns(steps, ended, state.sleepers, least_ns))
    }

    /// The waiter has slept for `most`. Returns whether its patience has run out without progress.
    pub(super) fn runs_out(&mut self, state: &Locked<'_>, most: Duration) -> bool {
        let (steps, least_ns) = (state.conduct.steps, state.conduct.away.least_ns);
        self.of_waiter.slept(steps, ns(most), least_ns)
    }
}

impl GracePeriods {
    /// Whether a driver that has made no progress is to be superseded: not while it sleeps for
    /// holdouts and one of them is still in its section, nor while the registry's lock is held.
    pub(super) fn has_stalled(&self, state: &Locked<'_>) -> bool {
        // The last scan's holdouts are all that a driver sleeps for: a policy under which it sleeps
        // has no relay, whose readers are in no list of holdouts.
        //~ no-take-over no-wake-up no-second-look forgotten-mark
        if !state.conduct.away.sleeps {
            return true;
        }
        let Some(registry) = self.registry_unless_busy() else { return false };
        let number = self.announced();
        !registry.marked.get() || !registry.holdouts().any(|slot| slot.is_holdout(number))
    }

    /// For a caller that does not wait: takes over from a driver that is not asleep and has made no
    /// progress since another such caller checked it. `None` if it has.
    ///
    /// How long that is: [`PassersPatience`].
    pub(crate) fn take_over_in_passing(
        &self,
        now_ns: u64,
        state: &mut Locked<'_>,
        aim: (Until, Me),
    ) -> Option<Driver> {
        let (steps, ended) = (state.conduct.steps, state.machine().sequence().ended());
        let least_ns = state.conduct.away.least_ns;
        let passers = &mut state.conduct.passers;
        if !passers.has_run_out(now_ns, steps, ended, least_ns) || !self.has_stalled(state) {
            return None;
        }
        let driver = self.take_over(state, aim)?;
        state.conduct.passers.took_over();
        Some(driver)
    }
}
