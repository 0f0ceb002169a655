//! The driver of a sleepable domain's machine: looks whether a bank has drained, naps, flips, and says that a grace
//! period has ended.
//!
//! Who waits drives, as with registered threads; for tasks and callbacks, the worker does. A driver that naps can be
//! woken by whoever is in more of a hurry. What the machine calls a jiffy is a millisecond here.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::Urgency;
use grace::two_bank::{Action, Event, Phase, Wait};

use super::handover::{Away, Patience};
use super::protocol::{self, Protocol, TwoBank};
use super::{Driver, GracePeriods, Me, State, Until};
use crate::chaos::{self, Mutant, Point};
use crate::event::statistics::Current;
use crate::event::trace;
use crate::gp::stall::Watch;
use crate::os::sync::{self, MutexGuard};
use crate::os::{clock, fence};
use crate::srcu::{Bank, Banks, track};

const JIFFY_NS: u64 = 1_000_000;

/// What a grace period waits for.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) sections: u64,
    /// By processor: begun and ended.
    pub(crate) balances: Vec<(Option<u32>, u64, u64)>,
}

/// What the driver does next.
enum Step {
    Report(Event),
    /// A run is due later.
    NotYet(Duration),
    Stop,
}

impl GracePeriods {
    /// Gives the domain its banks, which are its own from now on.
    ///
    /// # Safety
    /// They came from [`Banks::take`] and nobody else gives them back.
    pub(crate) unsafe fn give_banks(&mut self, banks: std::ptr::NonNull<Banks>) {
        self.banks = Some(super::OwnBanks(banks));
    }

    /// Another core has them.
    pub(crate) fn let_banks_go(&mut self) {
        if let Some(banks) = self.banks.take() {
            std::mem::forget(banks);
        }
    }

    /// The banks of a sleepable domain.
    ///
    /// # Panics
    /// If it is a domain of registered threads.
    #[inline]
    pub(crate) fn banks(&self) -> &Banks {
        self.banks.as_ref().expect("a sleepable domain").get()
    }

    /// Carries out the machine's actions, as far as `until` says. The caller has set `driven`.
    pub(super) fn drive_banks<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        driver: Driver,
    ) -> Result<MutexGuard<'a, State>, MutexGuard<'a, State>> {
        let until = driver.until;
        loop {
            let step;
            (state, step) = self.step(state, &driver)?;
            let event = match step {
                Step::Report(event) => event,
                Step::Stop => return Ok(state),
                Step::NotYet(left) => {
                    state = match until {
                        Until::Done(_) => self.nap(state, &driver, left)?,
                        // Whoever comes next goes on from there.
                        Until::MustWait { .. } => {
                            return self.still_drives(self.watched(state).0, &driver);
                        }
                    };
                    continue;
                }
            };
            state.banks().machine.observe(event).expect("each action is answered by its own event");
            let to_tell = state.sleepers_to_tell.are_due();
            if event == Event::HandedOut && (to_tell || until.is_reached(state.protocol.sequence()))
            {
                return Ok(state);
            }
        }
    }

    /// Waits for a full grace period of a sleepable domain, but so long at most. Returns whether it has ended.
    ///
    /// Does not stay the driver while it waits: it takes what steps can be taken, and sleeps beside the others.
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
                state = self.drive(state, driver);
            }
            if state.protocol.sequence().is_done(cookie) {
                break true;
            }
            let now_ns = clock::monotonic_ns();
            let left_ns = longest_ns.saturating_sub(now_ns.saturating_sub(began_ns));
            if left_ns == 0 {
                break false;
            }
            let nap_ns = state.banks().run_at_ns.saturating_sub(now_ns).min(left_ns);
            if state.driven {
                self.sleeps.fetch_add(1, Relaxed); // a statistic
                let left = Some(Duration::from_nanos(left_ns));
                (state, driver) = self.await_turn(state, &mut patience, aim, left);
            } else if nap_ns != 0 {
                self.sleeps.fetch_add(1, Relaxed);
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

    /// Carries out one action.
    fn step<'a>(
        &'a self,
        mut state: MutexGuard<'a, State>,
        driver: &Driver,
    ) -> Result<(MutexGuard<'a, State>, Step), MutexGuard<'a, State>> {
        let event = match state.banks().machine.pending() {
            Action::Idle => return Ok((state, Step::Stop)),
            Action::Queue(wait) => {
                state.banks().run_at_ns = match ns(wait) {
                    0 => 0,
                    ns => clock::monotonic_ns().saturating_add(ns),
                };
                self.note_begin(&mut state);
                Event::Queued
            }
            Action::Await => match state.banks().until_run() {
                Some(left) => return Ok((state, Step::NotYet(left))),
                None => Event::Runs,
            },
            Action::Check { bank } => {
                let bank = Bank::from(bank);
                let mut holdouts = 0;
                self.show_begin(state.protocol.sequence()); // before the heavy fence in `unfinished` [UL-1]
                let check = || holdouts = self.unfinished(bank);
                state = self.away(state, driver, Away::WORKS, check)?;
                state.watch.holdouts = usize::try_from(holdouts).unwrap_or(usize::MAX);
                if holdouts != 0 {
                    let urgency = state.protocol.urgency();
                    state.current.must_wait(urgency);
                }
                Event::Checked { drained: holdouts == 0 || state.banks().is_check_removed() }
            }
            Action::Spin { microseconds } => {
                let bank = Bank::from(grace::two_bank::other(state.banks().machine.current_bank()));
                let longest_ns = u64::from(microseconds) * 1_000;
                let away = Away::naps(Duration::from_nanos(longest_ns));
                state = self.away(state, driver, away, || self.spin(bank, longest_ns))?;
                Event::Spun
            }
            Action::Flip { to } => {
                if !chaos::mutant(Mutant::NoFlip) {
                    self.banks().flip_to(to);
                }
                Event::Flipped
            }
            Action::HandOut { sequence, .. } => {
                let sequence = protocol::of_banks(sequence);
                self.complete(&mut state, sequence);
                Event::HandedOut
            }
        };
        Ok((state, Step::Report(event)))
    }

    /// How many sections of a bank have not ended.
    fn unfinished(&self, bank: Bank) -> u64 {
        let banks = self.banks();
        if chaos::mutant(Mutant::LocksFirst) {
            let locks = banks.locks(bank);
            self.heavy_fence();
            chaos::point(Point::Summed);
            return locks.wrapping_sub(banks.unlocks(bank));
        }
        let unlocks = banks.unlocks(bank);
        chaos::point(Point::Summed);
        if !chaos::mutant(Mutant::NoHeavyFence) {
            self.heavy_fence(); // [SR-1]
        }
        banks.locks(bank).wrapping_sub(unlocks)
    }

    /// Looks away for so long, or until it seems that the bank has drained.
    fn spin(&self, bank: Bank, longest_ns: u64) {
        let (banks, began_ns) = (self.banks(), clock::monotonic_ns());
        while banks.locks(bank) != banks.unlocks(bank)
            && clock::monotonic_ns().saturating_sub(began_ns) < longest_ns
        {
            (0..16).for_each(|_| sync::relax());
        }
    }

    /// Sleeps for so long, or until somebody is in more of a hurry.
    fn nap<'a>(
        &'a self,
        state: MutexGuard<'a, State>,
        driver: &Driver,
        left: Duration,
    ) -> Result<MutexGuard<'a, State>, MutexGuard<'a, State>> {
        let mut state = self.still_drives(self.watched(state).0, driver)?;
        if state.banks().run_at_ns == 0 {
            return Ok(state); // somebody has come who is in a hurry
        }
        self.sleeps.fetch_add(1, Relaxed); // a statistic
        state.conduct.away = Away::naps(left);
        self.still_drives(sync::wait_at_most(&self.turn, state, Some(left)).0, driver)
    }

    /// The sections that the grace period in progress waits for; `None` in a domain of registered threads, and if there
    /// is none in progress.
    pub(crate) fn unfinished_sections(&self) -> Option<Unfinished> {
        let state = sync::lock(&self.state);
        let Protocol::TwoBank(two_bank) = &state.protocol else { return None };
        if !state.protocol.sequence().in_progress() {
            return None;
        }
        // Under the lock nobody flips them.
        let bank = Bank::from(grace::two_bank::other(two_bank.machine.current_bank()));
        let banks = self.banks();
        let unlocks = banks.unlocks(bank);
        fence::full(); // only told: a section more or less does no harm
        let sections = banks.locks(bank).saturating_sub(unlocks);
        Some(Unfinished { sections, balances: banks.balances(bank) })
    }

    /// The oldest guard that is listed, and how many are.
    pub(crate) fn oldest_guard(&self) -> Option<(track::Live, usize)> {
        track::oldest(self.banks.as_ref()?.get())
    }

    fn note_begin(&self, state: &mut State) {
        let sequence = state.protocol.sequence();
        let (number, urgency) = (sequence.ended().wrapping_add(1), state.protocol.urgency());
        if state.banks().begun != number {
            state.banks().begun = number;
            state.banks().ticked_ns = clock::monotonic_ns();
            state.watch = Watch::NEW;
            // Two heavy fences are to come: the clock costs little beside them.
            state.current = Current::beginning(urgency, true);
            trace::grace_period_began(self.source(), sequence, urgency);
        }
    }
}

impl State {
    /// # Panics
    /// If it is a domain of registered threads.
    pub(super) fn banks(&mut self) -> &mut TwoBank {
        match &mut self.protocol {
            Protocol::TwoBank(banks) => banks,
            Protocol::Threads(_) => unreachable!("drive() tells them apart"),
        }
    }

    /// When somebody is to look at the domain again on behalf of tasks that wait for its grace periods; `None` if there
    /// are none that do.
    pub(super) fn soon_ns(&self) -> Option<u64> {
        if !self.sleepers_to_tell.are_there() || !self.protocol.is_wanted() {
            return None;
        }
        Some(match &self.protocol {
            // Whoever leaves a section does not tell the worker.
            Protocol::Threads(_) => JIFFY_NS,
            Protocol::TwoBank(banks) => {
                // Whoever drives now may leave before the grace period that they wait for.
                let least_ns = if self.driven { JIFFY_NS } else { 0 };
                banks.run_at_ns.saturating_sub(clock::monotonic_ns()).max(least_ns)
            }
        })
    }
}

impl TwoBank {
    /// Whether the check that is due is the step that is removed.
    fn is_check_removed(&self) -> bool {
        let removed = match self.machine.sequence().phase() {
            Phase::Idle => false,
            Phase::Scan1 => chaos::mutant(Mutant::OneScan),
            Phase::Scan2 => chaos::mutant(Mutant::EarlyHandOut),
        };
        removed || chaos::mutant(Mutant::NoWait)
    }

    /// How long the next run is still to wait.
    fn until_run(&mut self) -> Option<Duration> {
        if self.run_at_ns == 0 {
            return None;
        }
        let now_ns = clock::monotonic_ns();
        if now_ns < self.run_at_ns {
            return Some(Duration::from_nanos(self.run_at_ns - now_ns));
        }
        let jiffies = now_ns / JIFFY_NS - (self.ticked_ns / JIFFY_NS).min(now_ns / JIFFY_NS);
        self.ticked_ns = now_ns;
        self.machine.tick(u32::try_from(jiffies).unwrap_or(u32::MAX));
        None
    }
}

fn ns(wait: Wait) -> u64 {
    match wait {
        Wait::Jiffies(jiffies) => u64::from(jiffies) * JIFFY_NS,
        Wait::Microseconds(microseconds) => u64::from(microseconds) * 1_000,
    }
}
