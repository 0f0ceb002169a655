//! The driver of a domain with registered readers: it takes the machine's steps, and waits between
//! two scans.
//!
//! Not a line here can end a grace period early: the steps are in [`super::steps`], and each sleep
//! ends with another scan. An error here could leave the driver asleep after the last holdout has
//! left.

use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::time::Duration;

use grace::driver::{Needed, Passing};
use grace::{Action, Event, Hint, Sequence, Urgency};

use super::patience::Away;
use super::{Driver, GracePeriods, Locked, State, Until};
use crate::gp::wake::WAITED_FOR;
use crate::os::{nap, sync};

impl GracePeriods {
    /// Carries out the machine's actions, until there is nothing left for this driver to do. Then
    /// wakes the tasks whose grace periods have ended; returns whether there were any. A driver
    /// that waits for a later grace period stops to wake them, and drives on under a new term: so
    /// the tasks do not wait for the sections that it waits for.
    pub(crate) fn drive(&self, state: &mut Locked<'_>, mut driver: Driver) -> bool {
        state.driven = true;
        match &self.counted {
            None => self.drive_registered(state, &mut driver),
            Some(counted) => counted.drive(self, state, &driver),
        }
        if self.is_superseded(&driver) {
            // The machine is not this driver's any more. (A fork forgets drivers.)
            state.conduct.superseded = state.conduct.superseded.saturating_sub(1);
            return false;
        }
        state.driven = false;
        // A thread may wait for a later grace period than this driver did.
        if state.sleepers != 0 {
            self.turn.notify_all();
        }
        self.tell_those_due(state)
    }

    /// Carries out the machine's actions for registered readers. Returns early if another driver
    /// has taken over.
    fn drive_registered(&self, state: &mut Locked<'_>, driver: &mut Driver) {
        let until = driver.until;
        let mut passing = Passing::new(matches!(until, Until::MustWait { tick: true }));
        loop {
            let took_over = std::mem::take(&mut driver.took_over);
            if let Action::Wait(hint) = state.poll() {
                let urgency = state.machine().urgency();
                state.current.must_wait(urgency == Urgency::Expedited);
                match until {
                    // The superseded driver has waited already: scan again first.
                    Until::Done(_) if took_over => {}
                    Until::Done(_) => self.pause(state, driver, hint),
                    Until::MustWait { .. } if passing.wait_has_ended(hint) => {}
                    // The machine stays at this step; the next driver polls again.
                    Until::MustWait { .. } => {
                        self.watched(state);
                        return;
                    }
                }
            }
            match state.step(driver) {
                None => return,
                Some(Event::Scanned { holdouts }) => {
                    passing.scanned();
                    state.current.holdouts = holdouts;
                }
                Some(Event::Completed) => {
                    if state.may_stop(until, state.machine().sequence()) {
                        return;
                    }
                    // Releases the lock after each grace period, even if there is nothing to wait
                    // for.
                    state.unlocked(|| ());
                    if self.is_superseded(driver) {
                        return;
                    }
                }
                Some(_) => {}
            }
        }
    }

    /// Spins for a moment, or sleeps until the last holdout has left, or until the tick comes.
    fn pause(&self, state: &mut Locked<'_>, driver: &Driver, hint: Hint) {
        match hint {
            Hint::Again => state.away(Away::WORKS, sync::relax),
            Hint::Sleep => {
                let before = state.current.pauses;
                state.current.pauses = before.saturating_add(1);
                match self.gp_words.links() {
                    None => state.away(Away::sleeps(Duration::ZERO), || self.sleep(driver)),
                    Some(links) => self.sleep_beside_liburcu(state, driver, links, before),
                }
            }
            Hint::Tick => state.away(Away::naps(nap::TICK), || {
                let _ = self.watched_asleep();
                nap::tick();
            }),
        }
    }

    /// Marks the holdouts and sleeps until each of them has left the section it was in.
    ///
    /// A reader that leaves stores its word, passes a light fence and loads its mark; the sleeper
    /// stores the mark, executes a heavy fence and loads the word. One of them sees the other's
    /// store [GP-6], so either the reader reports or the sleeper does it in its stead. Exactly one
    /// of them does: the one that clears the mark.
    pub(super) fn sleep(&self, driver: &Driver) {
        //~ point before-mark
        let Some(registry) = self.registry_as(driver) else { return };
        // Relaxed: no thread decrements for these marks before it has found one, and the lock and
        // the heavy fence come between. Readers that cleared a mark of a superseded driver may
        // still have to decrement [HO-2].
        self.gp_words.wake.0.left.fetch_add(registry.holdouts().count() as u32, Relaxed);
        registry.marked.set(false);
        registry.holdouts().for_each(|slot| slot.marks.set(WAITED_FOR));
        drop(registry);
        let readers_fence = self.gp_words.readers_fence;
        // [GP-6]
        self.fence(if readers_fence { Needed::Full } else { Needed::Heavy });
        //~ point marked
        let Some(registry) = self.registry_as(driver) else { return };
        let number = self.announced(); // the driver's own store
        for slot in registry.holdouts().filter(|slot| !slot.is_holdout(number)) {
            //~ no-second-look:
            if slot.marks.take(WAITED_FOR) {
                self.gp_words.holdout_left();
            }
        }
        registry.marked.set(true);
        drop(registry);
        self.counters().sleeps.fetch_add(1, Relaxed);
        loop {
            let rung = self.gp_words.wake.0.rung();
            // Acquire: pairs with the decrements [GP-7]. A thread that took over has rung since,
            // and may sleep in the place of this one.
            if self.gp_words.wake.0.left.load(Acquire) == 0 || self.is_superseded(driver) {
                break;
            }
            self.gp_words.wake.0.wait(rung, self.watched_asleep());
        }
    }
}

impl State {
    /// Whether a driver leaves at the end of a grace period.
    pub(crate) fn may_stop(&self, until: Until, sequence: Sequence) -> bool {
        self.sleepers_to_tell.are_due()
            || match until {
                Until::Done(cookie) => sequence.is_done(cookie),
                Until::MustWait { .. } => true,
            }
    }
}
