//! The driver of a sleepable domain's machine: looks whether a bank has drained, naps, flips, and
//! says that a grace period has ended.
//!
//! Who waits drives, as with registered threads; for tasks and callbacks, the worker does. A driver
//! that naps can be woken by whoever is in more of a hurry. What the machine calls a jiffy is a
//! millisecond here.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::two_bank::{Action, Adaptive, Event, Phase, Wait};

use super::{Bank, Banks};
use crate::chaos::{self, Mutant, Point};
use crate::event::statistics::Current;
use crate::event::trace;
use crate::gp::grace_periods::handover::Away;
use crate::gp::grace_periods::protocol::{self, Protocol, TwoBank};
use crate::gp::grace_periods::two_bank::{Counted, Driven, JIFFY_NS};
use crate::gp::grace_periods::{Driver, GracePeriods, State, Until};
use crate::gp::stall::Watch;
use crate::os::sync::{self, MutexGuard};
use crate::os::{clock, fence};

/// What a driver waits before it scans again: one scan, and one more within 5 us; then naps from 50
/// us to 10 ms, each half as long again as the one before. Callers are in no section of their own
/// domain, so the first scan is at once.
pub(crate) const DELAY: Adaptive = Adaptive { first_nap_us: 0, ..Adaptive::at(1_000) };

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

impl Counted for Banks {
    fn sections(&self) -> u64 {
        Self::sections(self)
    }

    fn drive<'a>(
        &self,
        domain: &'a GracePeriods,
        mut state: MutexGuard<'a, State>,
        driver: Driver,
    ) -> Driven<'a> {
        let until = driver.until;
        loop {
            let step;
            (state, step) = take_step(domain, self, state, &driver)?;
            let event = match step {
                Step::Report(event) => event,
                Step::Stop => return Ok(state),
                Step::NotYet(left) => {
                    state = match until {
                        Until::Done(_) => nap(domain, state, &driver, left)?,
                        // Whoever comes next goes on from there.
                        Until::MustWait { .. } => {
                            return domain.still_drives(domain.watched(state).0, &driver);
                        }
                    };
                    continue;
                }
            };
            state
                .two_bank()
                .machine
                .observe(event)
                .expect("each action is answered by its own event");
            let to_tell = state.sleepers_to_tell.are_due();
            if event == Event::HandedOut && (to_tell || until.is_reached(state.protocol.sequence()))
            {
                return Ok(state);
            }
        }
    }
}

/// Carries out one action.
#[inline(always)]
fn take_step<'a>(
    domain: &'a GracePeriods,
    banks: &Banks,
    mut state: MutexGuard<'a, State>,
    driver: &Driver,
) -> Result<(MutexGuard<'a, State>, Step), MutexGuard<'a, State>> {
    let event = match state.two_bank().machine.pending() {
        Action::Idle => return Ok((state, Step::Stop)),
        Action::Queue(wait) => {
            state.two_bank().run_at_ns = match ns(wait) {
                0 => 0,
                ns => clock::monotonic_ns().saturating_add(ns),
            };
            note_begin(domain, &mut state);
            Event::Queued
        }
        Action::Await => match until_run(state.two_bank()) {
            Some(left) => return Ok((state, Step::NotYet(left))),
            None => Event::Runs,
        },
        Action::Check { bank } => {
            let bank = Bank::from(bank);
            let mut holdouts = 0;
            // Before the heavy fence in `unfinished` [UL-1].
            domain.show_begin(state.protocol.sequence());
            let check = || holdouts = unfinished(domain, banks, bank);
            state = domain.away(state, driver, Away::WORKS, check)?;
            state.watch.holdouts = usize::try_from(holdouts).unwrap_or(usize::MAX);
            if holdouts != 0 {
                let urgency = state.protocol.urgency();
                state.current.must_wait(urgency);
            }
            Event::Checked { drained: holdouts == 0 || is_check_removed(state.two_bank()) }
        }
        Action::Spin { microseconds } => {
            let bank = Bank::from(grace::two_bank::other(state.two_bank().machine.current_bank()));
            let longest_ns = u64::from(microseconds) * 1_000;
            let away = Away::naps(Duration::from_nanos(longest_ns));
            state = domain.away(state, driver, away, || spin(banks, bank, longest_ns))?;
            Event::Spun
        }
        Action::Flip { to } => {
            if !chaos::mutant(Mutant::NoFlip) {
                banks.flip_to(to);
            }
            Event::Flipped
        }
        Action::HandOut { sequence, .. } => {
            let sequence = protocol::of_banks(sequence);
            domain.complete(&mut state, sequence);
            Event::HandedOut
        }
    };
    Ok((state, Step::Report(event)))
}

/// How many sections of a bank have not ended.
#[inline(always)]
fn unfinished(domain: &GracePeriods, banks: &Banks, bank: Bank) -> u64 {
    if chaos::mutant(Mutant::LocksFirst) {
        let locks = banks.locks(bank);
        domain.heavy_fence();
        chaos::point(Point::Summed);
        return locks.wrapping_sub(banks.unlocks(bank));
    }
    let unlocks = banks.unlocks(bank);
    chaos::point(Point::Summed);
    if !chaos::mutant(Mutant::NoHeavyFence) {
        domain.heavy_fence(); // [SR-1]
    }
    banks.locks(bank).wrapping_sub(unlocks)
}

/// Looks away for so long, or until it seems that the bank has drained.
fn spin(banks: &Banks, bank: Bank, longest_ns: u64) {
    let began_ns = clock::monotonic_ns();
    while banks.locks(bank) != banks.unlocks(bank)
        && clock::monotonic_ns().saturating_sub(began_ns) < longest_ns
    {
        (0..16).for_each(|_| sync::relax());
    }
}

/// Sleeps for so long, or until somebody is in more of a hurry.
fn nap<'a>(
    domain: &'a GracePeriods,
    state: MutexGuard<'a, State>,
    driver: &Driver,
    left: Duration,
) -> Result<MutexGuard<'a, State>, MutexGuard<'a, State>> {
    let mut state = domain.still_drives(domain.watched(state).0, driver)?;
    if state.two_bank().run_at_ns == 0 {
        return Ok(state); // somebody has come who is in a hurry
    }
    domain.counters().sleeps.fetch_add(1, Relaxed); // a statistic
    state.conduct.away = Away::naps(left);
    domain.still_drives(sync::wait_at_most(&domain.turn, state, Some(left)).0, driver)
}

/// The sections that the grace period in progress waits for; `None` if there is none in progress.
pub(crate) fn unfinished_sections(domain: &GracePeriods, banks: &Banks) -> Option<Unfinished> {
    let state = sync::lock(&domain.state);
    let Protocol::TwoBank(two_bank) = &state.protocol else { return None };
    if !state.protocol.sequence().in_progress() {
        return None;
    }
    // Under the lock nobody flips them.
    let bank = Bank::from(grace::two_bank::other(two_bank.machine.current_bank()));
    let unlocks = banks.unlocks(bank);
    fence::full(); // only told: a section more or less does no harm
    let sections = banks.locks(bank).saturating_sub(unlocks);
    Some(Unfinished { sections, balances: banks.balances(bank) })
}

fn note_begin(domain: &GracePeriods, state: &mut State) {
    let sequence = state.protocol.sequence();
    let (number, urgency) = (sequence.ended().wrapping_add(1), state.protocol.urgency());
    if state.two_bank().begun != number {
        state.two_bank().begun = number;
        state.two_bank().ticked_ns = clock::monotonic_ns();
        state.watch = Watch::NEW;
        // Two heavy fences are to come: the clock costs little beside them.
        state.current = Current::beginning(urgency, true);
        trace::grace_period_began(domain.source(), sequence, urgency);
    }
}

/// Whether the check that is due is the step that is removed.
fn is_check_removed(two_bank: &TwoBank) -> bool {
    let removed = match two_bank.machine.sequence().phase() {
        Phase::Idle => false,
        Phase::Scan1 => chaos::mutant(Mutant::OneScan),
        Phase::Scan2 => chaos::mutant(Mutant::EarlyHandOut),
    };
    removed || chaos::mutant(Mutant::NoScan)
}

/// How long the next run is still to wait.
fn until_run(two_bank: &mut TwoBank) -> Option<Duration> {
    if two_bank.run_at_ns == 0 {
        return None;
    }
    let now_ns = clock::monotonic_ns();
    if now_ns < two_bank.run_at_ns {
        return Some(Duration::from_nanos(two_bank.run_at_ns - now_ns));
    }
    let jiffies = now_ns / JIFFY_NS - (two_bank.ticked_ns / JIFFY_NS).min(now_ns / JIFFY_NS);
    two_bank.ticked_ns = now_ns;
    two_bank.machine.tick(u32::try_from(jiffies).unwrap_or(u32::MAX));
    None
}

fn ns(wait: Wait) -> u64 {
    match wait {
        Wait::Jiffies(jiffies) => u64::from(jiffies) * JIFFY_NS,
        Wait::Microseconds(microseconds) => u64::from(microseconds) * 1_000,
    }
}
