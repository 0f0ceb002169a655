//! The driver of a domain's grace-period machine, for registered readers.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use std::time::Duration;

use grace::driver::{Needed, Passing, fence_needed};
use grace::{Action, Event, Hint, Number, Sequence, word};

use super::handover::Away;
use super::{Driver, GracePeriods, State, Until};
use crate::event::statistics::Current;
use crate::event::trace;
use crate::gp::registry::Registry;
use crate::gp::stall::Watch;
use crate::os::sync::{self, MutexGuard};
use crate::os::{fence, nap};

impl GracePeriods {
    /// Carries out the machine's actions, until there is nothing left for this driver to do. Then
    /// wakes the tasks whose grace periods have ended; returns whether there were any. A driver
    /// that waits for a later grace period stops to wake them, and drives on under a new term: so
    /// the tasks do not wait for the sections that it waits for.
    pub(crate) fn drive<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        driver: Driver,
    ) -> (MutexGuard<'a, State>, bool) {
        state.driven = true;
        state = match &self.counted {
            None => self.drive_registered(state, driver),
            Some(counted) => counted.drive(self, state, &driver),
        };
        if self.is_superseded(&driver) {
            // The machine is not this driver's any more. (A fork forgets drivers.)
            state.conduct.superseded = state.conduct.superseded.saturating_sub(1);
            return (state, false);
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
    fn drive_registered<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        mut driver: Driver,
    ) -> MutexGuard<'a, State> {
        let Driver { until, me, .. } = driver;
        let mut passing = Passing::new(matches!(until, Until::MustWait { tick: true }));
        loop {
            let took_over = std::mem::take(&mut driver.took_over);
            let event = match state.machine.poll() {
                Action::Idle => return state,
                Action::Fence => {
                    self.show_begin(state.machine.sequence());
                    let needed = self.fence_needed(|registry| registry.quiescent(me.owner));
                    self.alone.store(needed.is_none(), Relaxed);
                    self.begin(&mut state, matches!(needed, Some(Needed::Heavy)));
                    match needed {
                        None => Event::Alone,
                        Some(fence) => {
                            state = self.away(state, Away::WORKS, || self.fence(fence));
                            Event::Fenced
                        }
                    }
                }
                Action::Announce(number) => {
                    self.announce(number);
                    Event::Announced
                }
                Action::Scan(number) => {
                    let mut holdouts = 0;
                    let scan = || holdouts = self.scan(number, &driver);
                    state = self.away(state, Away::WORKS, scan);
                    passing.scanned();
                    Event::Scanned { holdouts }
                }
                Action::Wait(hint) => {
                    let urgency = state.machine.urgency();
                    state.current.must_wait(urgency);
                    match until {
                        // The superseded driver has waited already: scan again first.
                        Until::Done(_) if took_over => {}
                        Until::Done(_) => state = self.pause(state, &driver, hint),
                        Until::MustWait { .. } if passing.wait_has_ended(hint) => {}
                        // The machine stays at this step; the next driver polls again.
                        Until::MustWait { .. } => return self.watched(state).0,
                    }
                    Event::Woken
                }
                Action::Complete(sequence) => {
                    self.complete(&mut state, sequence);
                    Event::Completed
                }
            };
            if !self.still_drives(&mut state, &driver) {
                return state;
            }
            if let Event::Scanned { holdouts } = event {
                state.watch.holdouts = holdouts;
            }
            state.machine.observe(event).expect("each action is answered by its own event");
            if event == Event::Completed {
                if state.may_stop(until) {
                    return state;
                }
                // Releases the lock after each grace period, even if there is nothing to wait for.
                state = self.away(state, Away::WORKS, || ());
                if self.is_superseded(&driver) {
                    return state;
                }
            }
        }
    }

    /// Carries out a grace period in one hold of the lock, if the only readers are `own` ones of
    /// the caller, which does not read by them. If there are others, the machine stays where it is,
    /// and the next driver continues from there. Returns whether it has ended.
    pub(super) fn drive_alone(&self, state: &mut State, own: usize) -> bool {
        if state.machine.poll() != Action::Fence {
            return false;
        }
        self.show_begin(state.machine.sequence());
        let needed = self.fence_needed(|_| own);
        self.alone.store(needed.is_none(), Relaxed);
        if needed.is_some() {
            return false;
        }
        self.begin(state, false);
        self.end_alone(state);
        true
    }

    /// Ends the grace period in progress, which is at its fence and has no registered reader to
    /// wait for.
    pub(crate) fn end_alone(&self, state: &mut State) {
        state.machine.observe(Event::Alone).expect("it was asked for a fence");
        self.complete(state, state.machine.sequence());
        state.machine.observe(Event::Completed).expect("it was asked to complete");
    }

    /// Calls `f` without the machine's lock.
    pub(super) fn unlocked<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        f: impl FnOnce(),
    ) -> MutexGuard<'a, State> {
        drop(state);
        f();
        sync::lock(&self.state)
    }

    /// Which fence the readers require; `None` if the only readers are `own` quiescent ones of the
    /// calling thread. A reader that registers later sees what was published before [GP-5].
    fn fence_needed(&self, own: impl FnOnce(&Registry) -> usize) -> Option<Needed> {
        //~ hazard-no-fence:
        if self.hazards.is_some() {
            return Some(Needed::Heavy); // for the slots of hazard pointers [HP-1]
        }
        let registry = sync::lock(&self.registry);
        //~ always-alone:
        let needed = fence_needed(registry.len(), own(&registry), registry.light());
        //~ no-fence-alone:
        if needed.is_none() {
            // This grace period has no other fence; the calling thread may be a reader later
            // [UL-1].
            fence::full_after_locked();
        }
        needed
    }

    /// Records the beginning of a grace period, once: an earlier driver may have done so. Reads the
    /// clock only if `timed`: next to a heavy fence that costs little; without one it takes longer
    /// than a grace period without holdouts. Returns whether this call recorded it.
    pub(crate) fn begin(&self, state: &mut State, timed: bool) -> bool {
        let sequence = state.machine.sequence();
        let number = Some(sequence.ended().wrapping_add(1));
        if state.begun == number {
            return false;
        }
        let urgency = state.machine.urgency();
        state.begun = number;
        state.watch = Watch::NEW;
        state.pauses = 0;
        state.current = Current::beginning(urgency, timed);
        trace::grace_period_began(self.source(), sequence, urgency);
        true
    }

    /// Orders what was unlinked before against what sections load after.
    fn fence(&self, needed: Needed) {
        match needed {
            Needed::Heavy => self.heavy_fence(), // [GP-1]
            // Pairs with the full fence of a QSBR reader that comes online [GP-8], or with those of
            // readers that all execute full fences [GP-1].
            Needed::Full => {
                fence::full(); //~ no-own-fence
            }
        }
        //~ point fenced
    }

    pub(crate) fn heavy_fence(&self) {
        if cfg!(loom) {
            fence::heavy(sync::lock(&self.registry).fences());
        } else {
            fence::heavy(std::iter::empty());
        }
        // Relaxed: a statistic.
        self.counters().heavy_fences.fetch_add(1, Relaxed);
    }

    /// Announces the number of this grace period to readers.
    pub(super) fn announce(&self, number: Number) {
        sync::lock(&self.registry).link(&self.gp_words.gp);
        // Release: pairs with the Acquire in `Slot::enter_outermost`, `renew` and `online` [GP-3]:
        // a thread that records this number sees what was published before the fence.
        self.gp_words.gp.store(word::entered(number), Release);
        if let Some(words) = self.gp_words.liburcu_words() {
            words.ctr.store(word::entered(number), Release); // [GP-3]
        }
        //~ point announced
    }

    /// Counts the holdouts. The locks and the Acquire loads order their sections before what
    /// follows [GP-2].
    pub(super) fn scan(&self, number: Number, driver: &Driver) -> usize {
        // The count of a superseded driver would not be used.
        let Some(mut registry) = self.registry_as(driver) else { return 0 };
        let holdouts = registry.scan(number, &self.gp_words.gp);
        drop(registry);
        if self.gp_words.liburcu.is_some() && holdouts == 0 && !cfg!(target_arch = "x86_64") {
            // Readers compiled long ago may not release at each store to their word [GP-2].
            self.heavy_fence();
        }
        holdouts
    }

    /// Spins for a moment, or sleeps until the last holdout has left, or until the tick comes.
    fn pause<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        driver: &Driver,
        hint: Hint,
    ) -> MutexGuard<'a, State> {
        match hint {
            Hint::Again => self.away(state, Away::WORKS, sync::relax),
            Hint::Sleep => {
                let before = state.pauses;
                state.pauses = before.saturating_add(1);
                match &self.gp_words.liburcu {
                    None => {
                        let asleep = Away::sleeps(Duration::ZERO);
                        self.away(state, asleep, || self.sleep(driver))
                    }
                    Some(links) => self.sleep_beside_liburcu(state, driver, links, before),
                }
            }
            Hint::Tick => self.away(state, Away::naps(nap::TICK), || {
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
        let Some(mut registry) = self.registry_as(driver) else { return };
        // Relaxed: no thread decrements for these marks before it has found one, and the lock and
        // the heavy fence come between. Readers that cleared a mark of a superseded driver may
        // still have to decrement [HO-2].
        self.gp_words.wake.0.left.fetch_add(registry.holdouts().count() as u32, Relaxed);
        registry.mark_holdouts();
        drop(registry);
        let readers_fence = self.gp_words.readers_fence;
        // [GP-6]
        self.fence(if readers_fence { Needed::Full } else { Needed::Heavy });
        //~ point marked
        let Some(mut registry) = self.registry_as(driver) else { return };
        let number = word::number(self.gp_words.gp.load(Relaxed)); // the driver's own store
        for slot in registry.holdouts().filter(|slot| !slot.is_holdout(number)) {
            //~ no-second-look:
            if slot.clear_waited_for() {
                self.gp_words.holdout_left();
            }
        }
        registry.marked = true;
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

    /// Makes the end of a grace period visible.
    pub(crate) fn complete(&self, state: &mut State, sequence: Sequence) {
        // Release: pairs with the Acquire in `sequence` [GP-4].
        self.completed.store(sequence.to_bits(), Release);
        if state.sleepers != 0 {
            self.turn.notify_all();
        }
        self.note_end_to_sleepers(state, sequence);
        let current = state.current;
        trace::grace_period_ended(self.source(), sequence, current.latency_ns(), current.expedited);
    }
}

impl State {
    /// Whether a driver leaves at the end of a grace period.
    pub(crate) fn may_stop(&self, until: Until) -> bool {
        self.sleepers_to_tell.are_due() || until.is_reached(self.machine.sequence())
    }
}

impl Until {
    pub(crate) fn is_reached(self, sequence: Sequence) -> bool {
        match self {
            Self::Done(cookie) => sequence.is_done(cookie),
            Self::MustWait { .. } => true,
        }
    }
}
