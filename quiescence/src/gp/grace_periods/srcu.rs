//! The part of a sleepable domain's driver that all drivers share. The rest is with the counters of
//! the readers, which this module does not know: see [`Counted`].

use std::fmt::Debug;
use std::ptr::NonNull;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::Urgency;

use super::handover::Patience;
use super::protocol::{Protocol, SrcuProtocol};
use super::{Driver, GracePeriods, Me, State, Until};
use crate::os::clock;
use crate::os::sync::{self, MutexGuard};

/// The length of the SRCU machine's jiffy.
pub(crate) const JIFFY_NS: u64 = 1_000_000;

/// The machine's lock, held; as an `Err` if another driver has superseded the calling one.
pub(crate) type Driven<'a> = Result<MutexGuard<'a, State>, MutexGuard<'a, State>>;

/// Readers that are counted, and not registered.
pub(crate) trait Counted: Debug + Send + Sync {
    /// How many sections are in progress.
    fn sections(&self) -> u64;

    /// Carries out the actions of the domain's machine, until `driver.until` is reached. The caller
    /// has set `driven`.
    fn drive<'a>(
        &self,
        domain: &'a GracePeriods,
        state: MutexGuard<'a, State>,
        driver: Driver,
    ) -> Driven<'a>;
}

/// The counters of a domain.
#[derive(Debug)]
pub(crate) struct CountedRef(NonNull<dyn Counted>);

// SAFETY: stands for a shared reference to a value that is `Send` and `Sync`.
unsafe impl Send for CountedRef {}
// SAFETY: as above.
unsafe impl Sync for CountedRef {}

impl CountedRef {
    pub(super) fn get(&self) -> &dyn Counted {
        // SAFETY: valid as long as the domain, by the contract of `count_in`.
        unsafe { self.0.as_ref() }
    }
}

impl GracePeriods {
    /// Makes the domain wait for the sections that `counted` counts.
    ///
    /// # Safety
    /// `counted` stays valid until `self` has been dropped.
    pub(crate) unsafe fn count_in(&mut self, counted: NonNull<dyn Counted>) {
        self.counted = Some(CountedRef(counted));
    }

    /// As [`Counted::drive`].
    pub(super) fn drive_srcu<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        driver: Driver,
    ) -> Driven<'a> {
        let counted = self.counted.as_ref().expect("a domain with this machine has counters");
        counted.get().drive(self, state, driver)
    }

    /// Waits for a full grace period of a sleepable domain, but for at most `longest`. Returns
    /// whether it has ended.
    ///
    /// Does not stay the driver while it waits: it takes the steps that need no waiting, and sleeps
    /// like the other waiters.
    pub(crate) fn synchronize_within(&self, urgency: Urgency, longest: Duration) -> bool {
        let began_ns = clock::monotonic_ns();
        let longest_ns = u64::try_from(longest.as_nanos()).unwrap_or(u64::MAX);
        let mut state = sync::lock(&self.state);
        let cookie = self.request_locked(&mut state, urgency);
        let aim = (Until::MustWait { tick: false }, Me::NOBODY);
        let (mut driver, mut patience) = (None, Patience::NEW);
        let is_over = loop {
            if !state.driven {
                driver = Some(self.begin_term(aim.0, aim.1));
            }
            if let Some(driver) = driver.take() {
                state = self.drive(state, driver).0;
            }
            if state.protocol.sequence().is_done(cookie) {
                break true;
            }
            let now_ns = clock::monotonic_ns();
            let left_ns = longest_ns.saturating_sub(now_ns.saturating_sub(began_ns));
            if left_ns == 0 {
                break false;
            }
            let nap_ns = state.srcu().run_at_ns.saturating_sub(now_ns).min(left_ns);
            if state.driven {
                self.counters().sleeps.fetch_add(1, Relaxed); // a statistic
                let left = Some(Duration::from_nanos(left_ns));
                (state, driver) = self.await_turn(state, &mut patience, aim, left);
            } else if nap_ns != 0 {
                self.counters().sleeps.fetch_add(1, Relaxed);
                state.sleepers += 1;
                let nap = Some(Duration::from_nanos(nap_ns));
                state = sync::wait_at_most(&self.turn, state, nap).0;
                state.sleepers = state.sleepers.saturating_sub(1); // a fork forgets sleepers
            }
        };
        drop(state);
        self.unlocked_again();
        is_over
    }
}

impl State {
    /// # Panics
    /// If it is a domain of registered threads.
    pub(crate) fn srcu(&mut self) -> &mut SrcuProtocol {
        match &mut self.protocol {
            Protocol::Srcu(srcu) => srcu,
            Protocol::Threads(_) => unreachable!("drive() tells them apart"),
        }
    }

    /// In how many nanoseconds the worker is to check the domain again for tasks that wait for its
    /// grace periods; `None` if no task waits, or no grace period is wanted.
    pub(super) fn soon_ns(&self) -> Option<u64> {
        if !self.sleepers_to_tell.are_there() || !self.protocol.is_wanted() {
            return None;
        }
        Some(match &self.protocol {
            // A thread that leaves a section does not tell the worker.
            Protocol::Threads(_) => JIFFY_NS,
            Protocol::Srcu(srcu) => {
                // The present driver may leave before the grace period that the tasks wait for
                // ends.
                let least_ns = if self.driven { JIFFY_NS } else { 0 };
                srcu.run_at_ns.saturating_sub(clock::monotonic_ns()).max(least_ns)
            }
        })
    }
}
