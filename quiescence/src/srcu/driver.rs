//! The driver of a sleepable domain's machine: looks whether an index has drained, naps, flips, and
//! says that a grace period has ended.
//!
//! Who waits drives, as with registered threads; for tasks and callbacks, the worker does. A driver
//! that naps can be woken by the thread that is in more of a hurry. What the machine calls a jiffy
//! is a millisecond here.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::srcu::{Action, AdaptiveDelay, Event, Wait};

use super::{Index, SrcuCounts};
use crate::gp::grace_periods::handover::Away;
use crate::gp::grace_periods::protocol::{self, Protocol, SrcuProtocol};
use crate::gp::grace_periods::srcu::{Counted, Driven, JIFFY_NS};
use crate::gp::grace_periods::{Driver, GracePeriods, State, Until};
use crate::os::sync::{self, MutexGuard};
use crate::os::{clock, fence};

/// What a driver waits before it scans again: one scan, and one more within 5 us; then naps from 50
/// us to 10 ms, each half as long again as the one before. Callers are in no section of their own
/// domain, so the first scan is at once.
pub(crate) const DELAY: AdaptiveDelay =
    AdaptiveDelay { first_nap_us: 0, ..AdaptiveDelay::at(1_000) };

/// What a grace period waits for.
#[derive(Debug)]
pub(crate) struct Unfinished {
    pub(crate) sections: u64,
    /// By CPU: begun and ended.
    pub(crate) balances: Vec<(Option<u32>, u64, u64)>,
}

/// What the driver does next.
enum Step {
    Report(Event),
    /// A run is due later.
    NotYet(Duration),
    Stop,
}

impl Counted for SrcuCounts {
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
                        // The next thread continues from there.
                        Until::MustWait { .. } => {
                            return domain.still_drives(domain.watched(state).0, &driver);
                        }
                    };
                    continue;
                }
            };
            state.srcu().machine.observe(event).expect("each action is answered by its own event");
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
    srcu_counts: &SrcuCounts,
    mut state: MutexGuard<'a, State>,
    driver: &Driver,
) -> Result<(MutexGuard<'a, State>, Step), MutexGuard<'a, State>> {
    let event = match state.srcu().machine.pending() {
        Action::Idle => return Ok((state, Step::Stop)),
        Action::Queue(wait) => {
            state.srcu().run_at_ns = match ns(wait) {
                0 => 0,
                ns => clock::monotonic_ns().saturating_add(ns),
            };
            if domain.begin(&mut state, true) {
                state.srcu().ticked_ns = clock::monotonic_ns();
            }
            Event::Queued
        }
        Action::Await => match until_run(state.srcu()) {
            Some(left) => return Ok((state, Step::NotYet(left))),
            None => Event::Runs,
        },
        Action::Check { index } => {
            let index = Index::from(index);
            let mut holdouts = 0;
            // Before the heavy fence in `unfinished` [UL-1].
            domain.show_begin(state.protocol.sequence());
            let check = || holdouts = unfinished(domain, srcu_counts, index);
            state = domain.away(state, driver, Away::WORKS, check)?;
            state.watch.holdouts = usize::try_from(holdouts).unwrap_or(usize::MAX);
            if holdouts != 0 {
                let urgency = state.protocol.urgency();
                state.current.must_wait(urgency);
            }
            Event::Checked { drained: holdouts == 0 } //~ one-scan early-hand-out no-scan
        }
        Action::Spin { microseconds } => {
            let index = Index::from(grace::srcu::other(state.srcu().machine.current_index()));
            let longest_ns = u64::from(microseconds) * 1_000;
            let away = Away::naps(Duration::from_nanos(longest_ns));
            state = domain.away(state, driver, away, || spin(srcu_counts, index, longest_ns))?;
            Event::Spun
        }
        Action::Flip { to } => {
            srcu_counts.flip_to(to); //~ no-flip
            Event::Flipped
        }
        Action::HandOut { sequence, .. } => {
            let sequence = protocol::of_srcu(sequence);
            domain.complete(&mut state, sequence);
            Event::HandedOut
        }
    };
    Ok((state, Step::Report(event)))
}

/// How many sections of an index have not ended.
#[inline(always)]
fn unfinished(domain: &GracePeriods, srcu_counts: &SrcuCounts, index: Index) -> u64 {
    //~ locks-first
    let unlocks = srcu_counts.unlocks(index);
    //~ point summed
    domain.heavy_fence(); // [SR-1] //~ no-heavy-fence
    srcu_counts.locks(index).wrapping_sub(unlocks)
}

/// Looks away for so long, or until it seems that the index has drained.
fn spin(srcu_counts: &SrcuCounts, index: Index, longest_ns: u64) {
    let began_ns = clock::monotonic_ns();
    while srcu_counts.locks(index) != srcu_counts.unlocks(index)
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
    if state.srcu().run_at_ns == 0 {
        return Ok(state); // somebody has come who is in a hurry
    }
    domain.counters().sleeps.fetch_add(1, Relaxed); // a statistic
    state.conduct.away = Away::naps(left);
    domain.still_drives(sync::wait_at_most(&domain.turn, state, Some(left)).0, driver)
}

/// The sections that the grace period in progress waits for; `None` if there is none in progress.
pub(crate) fn unfinished_sections(
    domain: &GracePeriods,
    srcu_counts: &SrcuCounts,
) -> Option<Unfinished> {
    let state = sync::lock(&domain.state);
    let Protocol::Srcu(srcu) = &state.protocol else { return None };
    if !state.protocol.sequence().in_progress() {
        return None;
    }
    // Under the lock no thread flips them.
    let index = Index::from(grace::srcu::other(srcu.machine.current_index()));
    let unlocks = srcu_counts.unlocks(index);
    fence::full(); // only told: a section more or less does no harm
    let sections = srcu_counts.locks(index).saturating_sub(unlocks);
    Some(Unfinished { sections, balances: srcu_counts.balances(index) })
}

/// How long the next run is still to wait.
fn until_run(srcu: &mut SrcuProtocol) -> Option<Duration> {
    if srcu.run_at_ns == 0 {
        return None;
    }
    let now_ns = clock::monotonic_ns();
    if now_ns < srcu.run_at_ns {
        return Some(Duration::from_nanos(srcu.run_at_ns - now_ns));
    }
    let jiffies = now_ns / JIFFY_NS - (srcu.ticked_ns / JIFFY_NS).min(now_ns / JIFFY_NS);
    srcu.ticked_ns = now_ns;
    srcu.machine.tick(u32::try_from(jiffies).unwrap_or(u32::MAX));
    None
}

fn ns(wait: Wait) -> u64 {
    match wait {
        Wait::Jiffies(jiffies) => u64::from(jiffies) * JIFFY_NS,
        Wait::Microseconds(microseconds) => u64::from(microseconds) * 1_000,
    }
}
