//! Checks of the age of the grace period in progress: by a driver before it waits and after its
//! sleep, by the waiters, and by the worker.
//!
//! A grace period that need not wait costs nothing here, and neither does an immediate rescan. A
//! thread that sleeps wakes when the next report is due, and leaves a note for the reporter then.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::Urgency;

use super::handover::Patience;
use super::{Driver, GracePeriods, Me, State, Until};
use crate::event::trace;
use crate::gp::stall::Note;
use crate::os::clock;
use crate::os::sync::{self, MutexGuard};

impl GracePeriods {
    /// Has a report made if one is due. Returns for how long no other check is needed.
    pub(crate) fn watched<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
    ) -> (MutexGuard<'a, State>, Option<Duration>) {
        let (note, left) = self.look_at_age(&mut state);
        if let Some(note) = note {
            state = self.unlocked(state, || (crate::HOOKS.gp.stalled)(note));
        }
        (state, left)
    }

    fn look_at_age(&self, state: &mut State) -> (Option<Note>, Option<Duration>) {
        let waiting = state.machine.sequence().in_progress();
        let since_ns = state.current.waits_since_ns.filter(|_| waiting);
        let Some(since_ns) = since_ns else {
            return (None, None);
        };
        let now_ns = clock::monotonic_ns();
        let expedited = state.machine.urgency() == Urgency::Expedited;
        let limit_ns = self.tuning.stall_after_ns(expedited);
        let note = state.watch.take_due(now_ns, since_ns, limit_ns).map(|age_ns| {
            // It is in progress, so one more than have ended.
            let grace_period = state.machine.sequence().ended().wrapping_add(1);
            trace::stalled(self.source(), grace_period, age_ns, state.watch.holdouts as u64);
            let (core, identity) = (std::ptr::from_ref(self).cast(), self.identity());
            Note { core, identity, grace_period, age_ns, expedited }
        });
        let due_ns = state.watch.due_ns(since_ns, limit_ns);
        (note, due_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(now_ns))))
    }

    /// For a driver that sleeps without the lock: as [`watched`](Self::watched).
    pub(crate) fn watched_asleep(&self) -> Option<Duration> {
        self.watched(sync::lock(&self.state)).1
    }

    /// For the worker: has a report made if one is due, whichever thread drives. If another thread
    /// holds the lock, the next tick checks again.
    pub(crate) fn look_for_stall(&self) {
        if let Some(state) = sync::try_lock(&self.state) {
            drop(self.watched(state));
        }
    }

    /// Sleeps until a grace period has ended, the driver has left or a report is due, but at most
    /// for `most`; may return early. If the driver has made no progress for too long, returns one
    /// to take its place.
    pub(crate) fn await_turn<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        patience: &mut Patience,
        aim: (Until, Me),
        most: Option<Duration>,
    ) -> (MutexGuard<'a, State>, Option<Driver>) {
        #[cfg(loom)]
        if let Some(left) = patience.take_overs.checked_sub(1) {
            patience.take_overs = left;
            return self.take_over_stalled(state, patience, aim);
        }
        let (note, left) = self.look_at_age(&mut state);
        if let Some(note) = note {
            // The grace period may have ended meanwhile: the caller checks first.
            return (self.unlocked(state, || (crate::HOOKS.gp.stalled)(note)), None);
        }
        let patient = patience.left(self, &state);
        let most = [left, most].into_iter().flatten().fold(patient, Duration::min);
        state.sleepers += 1;
        let late;
        (state, late) = sync::wait_at_most(&self.turn, state, Some(most));
        state.sleepers = state.sleepers.saturating_sub(1); // a fork forgets sleepers
        if !late || !patience.slept(self, &state, most) {
            return (state, None);
        }
        self.take_over_stalled(state, patience, aim)
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
            if state.machine.sequence().is_done(cookie) {
                break true;
            }
            let now_ns = clock::monotonic_ns();
            let left_ns = longest_ns.saturating_sub(now_ns.saturating_sub(began_ns));
            if left_ns == 0 {
                break false;
            }
            let nap_ns = state.put_off_until_ns.saturating_sub(now_ns).min(left_ns);
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
