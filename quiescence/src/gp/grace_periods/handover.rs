//! The hand-over: a waiter takes the place of a driver that makes no progress.
//!
//! A driver that loses its CPU between two steps (a `SCHED_IDLE` thread among busy ones, a thread
//! that a debugger or a signal handler stops) would hold up every other updater. What the next
//! driver needs is in the machine, under its lock: so a waiter that has seen no progress for its
//! [`Patience`] begins a new *term* and carries out the pending action itself. The fence and the
//! scan may be done twice; a wait may end early.
//!
//! **Invariant [HO-1]: only the driver of the current term changes the machine, the registry's list
//! of holdouts, their marks and the word it sleeps on.** Terms are numbered. A term begins under
//! the machine's lock; if it ends another one, under the registry's as well. A driver compares its
//! number with the current one each time it takes one of the two locks, before it changes anything.
//! A driver that finds another number discards its result, and is a waiter from then on.
//!
//! **Invariant [HO-2]: when a term begins no mark is set.** The thread that takes over clears the
//! marks of the superseded driver, and ends its sleep. A reader that has cleared its mark but not
//! yet decremented is still counted in `wake.left`, which the next sleep adds to. So `wake.left` is
//! at any time the number of marks that are set, plus the decrements that are still to come.
//!
//! # What remains
//!
//! A driver that loses its CPU while it holds the machine's lock or the registry's holds up every
//! other updater until it runs again. Only the worker passes on if the machine's lock is held
//! ([W-2] in `reclaim/worker.rs`). The locks are held for some ten nanoseconds a step, and for a
//! scan. A futex with priority inheritance would not help: the kernel does not lend the weight of
//! one ordinary thread to another. Raising the driver's own scheduling class takes privileges
//! (`RLIMIT_NICE`).
//!
//! Nothing here can end a grace period early: a thread that takes over begins a term in
//! [`super::steps`], and carries out the pending action there. If it takes over too early, the
//! action is carried out twice.

use std::sync::atomic::Ordering::AcqRel;
use std::time::Duration;

use super::patience::{Away, Patience};
use super::{Driver, GracePeriods, Locked, Me, Until};
use crate::gp::{slot::Slot, wake::WAITED_FOR};

impl Locked<'_> {
    /// As [`unlocked`](Self::unlocked), for a driver that does so in its term. `driven` keeps other
    /// threads from driving meanwhile, as long as their patience lasts; they can still make
    /// requests.
    #[inline(always)]
    pub(crate) fn away(&mut self, away: Away, f: impl FnOnce()) {
        self.conduct.away = away;
        self.unlocked(f);
    }

    /// As [`wait`](Self::wait), for one of those that a driver is to notify.
    pub(crate) fn wait_as_sleeper(&mut self, most: Duration) -> bool {
        self.sleepers += 1;
        let late = self.wait(most);
        self.sleepers = self.sleepers.saturating_sub(1); // a fork forgets sleepers
        late
    }
}

impl GracePeriods {
    /// Sleeps until a grace period has ended, the driver has left or a report is due, but at most
    /// for `most`; may return early. If the driver has made no progress for too long, returns one
    /// to take its place.
    pub(crate) fn await_turn(
        &self,
        state: &mut Locked<'_>,
        patience: &mut Patience,
        aim: (Until, Me),
        most: Option<Duration>,
    ) -> Option<Driver> {
        #[cfg(loom)]
        if patience.take_overs != 0 && self.has_stalled(state) {
            patience.take_overs -= 1;
            return self.take_over(state, aim);
        }
        let (note, left) = self.look_at_age(state);
        if let Some(note) = note {
            // The grace period may have ended meanwhile: the caller checks first.
            state.unlocked(|| (crate::HOOKS.stalled)(note));
            return None;
        }
        let most = [left, most].into_iter().flatten().fold(patience.left(state), Duration::min);
        let runs_out = state.wait_as_sleeper(most) && patience.runs_out(state, most);
        if !runs_out || !state.driven || !self.has_stalled(state) {
            return None;
        }
        self.take_over(state, aim)
    }

    /// Ends the term and the sleep of the driver at work. `None` if the registry's lock is held:
    /// perhaps by that driver, and then taking over gains nothing.
    pub(super) fn take_over(
        &self,
        state: &mut Locked<'_>,
        (until, me): (Until, Me),
    ) -> Option<Driver> {
        let registry = self.registry_unless_busy()?;
        let driver = state.take_over(&registry, until, me);
        //~ marks-outlive-their-driver:
        if state.conduct.away.sleeps {
            registry.marked.set(false);
            let is_marked = |slot: &&Slot| slot.marks.take(WAITED_FOR);
            let withdrawn = registry.holdouts().filter(is_marked).count() as u32; // [HO-2]
            drop(registry);
            match self.gp_words.liburcu_words() {
                Some(words) => words.wake(),
                None => {
                    // AcqRel: one of the chain of decrements [GP-7].
                    self.gp_words.wake.0.left.fetch_sub(withdrawn, AcqRel);
                    self.gp_words.wake.0.ring(); //~ silent-take-over
                }
            }
        }
        state.conduct.superseded = state.conduct.superseded.saturating_add(1);
        Some(driver)
    }
}

#[cfg(test)]
mod tests {
    #![cfg_attr(not(target_os = "linux"), allow(unused_imports, reason = "some tests are Linux's"))]

    use std::panic::Location;
    use std::sync::atomic::Ordering::SeqCst;
    use std::thread;

    use super::*;
    use crate::Domain;
    use crate::common::threads::until;
    use crate::gp::slot::ReaderKind;
    use crate::gp::tuning::Tuning;
    use crate::os::sync::AtomicU32;
    use crate::os::thread as system;
    use crate::os::thread_state::{self, ThreadState};
    use crate::reclaim::domain_state::Named;
    use grace::Urgency;

    /// How long after its first check of a driver without progress each caller takes over, one
    /// after the other in one grace period; none of them takes a step.
    fn patience_of_those_who_pass(core: &GracePeriods, callers: usize) -> Vec<Duration> {
        let aim = (Until::MustWait { tick: false }, Me::NOBODY);
        let mut state = core.lock();
        state.driven = true;
        let mut now_ns = 1_000_000_000;
        (0..callers)
            .map(|_| {
                let since_ns = now_ns;
                assert!(core.take_over_in_passing(now_ns, &mut state, aim).is_none(), "the look");
                while core.take_over_in_passing(now_ns, &mut state, aim).is_none() {
                    now_ns += 10_000;
                }
                Duration::from_nanos(now_ns - since_ns)
            })
            .collect()
    }

    /// Each caller used to have the patience of the first: while a fence took longer than that,
    /// none of them completed its step.
    #[test]
    fn those_who_pass_are_patient_with_each_other() {
        let domain = Domain::new();
        let core = domain.tag().core();
        let expected: Vec<_> = (0..5)
            .map(|doublings| Duration::from_nanos(grace::handover::PATIENCE_NS << doublings))
            .collect();
        core.grace_periods.lock().request(Urgency::Normal);
        assert_eq!(patience_of_those_who_pass(&core.grace_periods, 5), expected);
        core.grace_periods.lock().driven = false;
        assert!(core.grace_periods.synchronize(Urgency::Normal, Me::NOBODY));
        assert_eq!(
            patience_of_those_who_pass(&core.grace_periods, 2),
            expected[..2],
            "in the next one anew"
        );
        core.grace_periods.lock().driven = false;
    }

    /// A thread that took over used to assume that the grace period had begun: it counted and timed
    /// the previous one as its own.
    #[test]
    fn a_grace_period_that_begins_with_a_take_over_is_noted() {
        let domain = Domain::new();
        let core = domain.tag().core();
        let slot = core.grace_periods.register(1, ReaderKind::Ordinary);
        core.grace_periods.lock().request(Urgency::Normal);
        let mut state = core.grace_periods.lock();
        state.driven = true; // by a thread that makes no progress
        let driver =
            core.grace_periods.take_over(&mut state, (Until::MustWait { tick: false }, Me::NOBODY));
        core.grace_periods.drive(&mut state, driver.expect("the registry is free"));
        drop(state);
        core.grace_periods.unregister(slot);
        let statistics = domain.statistics();
        assert_eq!((statistics.grace_periods, statistics.latency.count()), (1, 1));
    }

    /// A driver that is superseded while it sleeps for a holdout returns, and does not sleep on for
    /// that holdout.
    #[test]
    #[cfg(target_os = "linux")]
    #[cfg_attr(miri, ignore = "looks at /proc")]
    fn a_driver_whose_place_is_taken_in_its_sleep_returns() {
        let domain = Domain::new();
        let core = domain.tag().core();
        // No report is due, or the driver wakes for it and sees that its place is taken.
        core.grace_periods.tuning.set(Tuning { stall_after: None, ..domain.tuning() });
        let slot = core.grace_periods.register(1, ReaderKind::Ordinary);
        slot.enter_slow(&core.grace_periods.gp_words.gp, Location::caller());
        core.grace_periods.lock().request(Urgency::Normal);
        core.grace_periods.advance(Me::NOBODY);
        let aim = Until::MustWait { tick: false };
        assert_eq!(core.grace_periods.registry().holdouts().count(), 1);
        let asleep = AtomicU32::new(0);
        thread::scope(|scope| {
            scope.spawn(|| {
                let driver = core.grace_periods.lock().begin_term(aim, Me::NOBODY);
                asleep.store(system::id(), SeqCst);
                core.grace_periods.sleep(&driver);
            });
            until(|| core.grace_periods.counters().sleeps.load(SeqCst) != 0);
            let state = || thread_state::look_at(asleep.load(SeqCst)).state;
            until(|| state() == ThreadState::Sleeping);
            let mut state = core.grace_periods.lock();
            state.conduct.away = Away::sleeps(Duration::ZERO);
            assert!(core.grace_periods.take_over(&mut state, (aim, Me::NOBODY)).is_some());
        });
        slot.leave();
        core.grace_periods.unregister(slot);
    }
}
