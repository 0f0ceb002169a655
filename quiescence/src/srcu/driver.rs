//! The driver of a sleepable domain: checks whether an index has drained, naps, flips, and reports
//! that a grace period has ended.
//!
//! There are two machines. The domain's own ([`grace::Machine`]) takes requests and numbers grace
//! periods; here it knows no readers. Each of its grace periods is one of [`grace::srcu`]'s, which
//! waits for the sections. **Invariant [SR-3]: the domain's grace period ends only after one of
//! SRCU's that began after it.** So it serves the requests that were made before it began, as in
//! any domain [GM-1].
//!
//! A waiting thread drives, as with registered threads; for tasks and callbacks, the worker does. A
//! thread that is in a greater hurry can wake a napping driver. The machine's jiffy is a
//! millisecond here.

use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use grace::Urgency;
use grace::srcu::{Action, AdaptiveDelay, Cookie, Event, Sequence, SrcuMachine, Wait};

use super::{Index, OwnSrcuCounts, SrcuCounts, track};
use crate::gp::grace_periods::patience::{Away, Patience};
use crate::gp::grace_periods::{Counted, Driver, GracePeriods, Locked, Me, Until};
use crate::gp::stall::{Live, Unfinished};
use crate::os::sync::{self, Mutex, MutexGuard, Rank};
use crate::os::{clock, fence};

/// The length of the SRCU machine's jiffy.
const JIFFY_NS: u64 = 1_000_000;

/// What a driver waits before it scans again: one scan, and one more within 5 µs; then naps from 50
/// µs to 10 ms, each half as long again as the one before. Callers are in no section of their own
/// domain, so the first scan is at once.
pub(crate) const DELAY: AdaptiveDelay =
    AdaptiveDelay { first_nap_us: 0, ..AdaptiveDelay::at(1_000) };

/// The sections of a sleepable domain, and the machine that waits for them.
pub(crate) struct Sections {
    srcu_counts: OwnSrcuCounts,
    /// Locked by a driver in its term only, under the lock of the domain's machine: so it never
    /// waits, and a `fork` finds it free.
    srcu: Mutex<SrcuState>,
}

/// SRCU's machine, and what its driver knows.
struct SrcuState {
    machine: SrcuMachine<AdaptiveDelay>,
    /// The grace period that is the domain's one in progress.
    cookie: Cookie,
    /// When the machine was last told of ticks.
    ticked_ns: u64,
}

impl Sections {
    pub(crate) fn new(srcu_counts: OwnSrcuCounts, delay: AdaptiveDelay) -> Self {
        let start = Sequence::after(0);
        let machine = SrcuMachine::new(delay, start);
        let srcu = SrcuState { machine, cookie: Cookie::done_at(start), ticked_ns: 0 };
        Self { srcu_counts, srcu: Mutex::new(Rank::Sections, srcu) }
    }

    fn srcu(&self) -> MutexGuard<'_, SrcuState> {
        sync::lock(&self.srcu)
    }
}

impl Counted for Sections {
    fn sections(&self) -> u64 {
        self.srcu_counts.get().sections()
    }

    fn drive(&self, domain: &GracePeriods, state: &mut Locked<'_>, driver: &Driver) {
        let srcu_counts = self.srcu_counts.get();
        let mut has_put_off = false;
        while state.poll() != grace::Action::Idle {
            let action = self.srcu().next(state);
            let event = match action {
                Action::Idle => {
                    state.end_counted(); // [SR-3]
                    if state.may_stop(driver.until, state.machine().sequence()) {
                        return;
                    }
                    continue;
                }
                Action::Queue(wait) => {
                    has_put_off = ns(wait) != 0;
                    state.put_off_until_ns = match ns(wait) {
                        0 => 0,
                        ns => clock::monotonic_ns().saturating_add(ns),
                    };
                    Some(Event::Queued)
                }
                Action::Await => {
                    let put_off = match driver.until {
                        // However soon: where a check takes longer than the wait after it, a
                        // thread that may not wait would check until the sections have ended.
                        Until::MustWait { .. } if has_put_off => Some(Duration::ZERO),
                        _ => self.srcu().until_run(state),
                    };
                    if let Some(left) = put_off {
                        domain.watched(state);
                        match driver.until {
                            Until::Done(_) => nap(domain, state, driver, left),
                            // The next thread continues from there.
                            Until::MustWait { .. } => return,
                        }
                    }
                    put_off.is_none().then_some(Event::Runs)
                }
                Action::Check { index } => {
                    let mut holdouts = 0;
                    // Before the heavy fence in `unfinished` [UL-1].
                    state.show_begin();
                    let check = || holdouts = unfinished(domain, srcu_counts, Index::from(index));
                    state.away(Away::WORKS, check);
                    if domain.is_superseded(driver) {
                        return;
                    }
                    state.current.holdouts = usize::try_from(holdouts).unwrap_or(usize::MAX);
                    if holdouts != 0 {
                        let urgency = state.machine().urgency();
                        state.current.must_wait(urgency == Urgency::Expedited);
                    }
                    let drained = holdouts == 0; //~ one-scan early-hand-out no-scan
                    Some(Event::Checked { drained })
                }
                Action::Spin { microseconds } => {
                    let index = srcu_counts.other_index();
                    let longest_ns = u64::from(microseconds) * 1_000;
                    let away = Away::naps(Duration::from_nanos(longest_ns));
                    state.away(away, || spin(srcu_counts, index, longest_ns));
                    Some(Event::Spun)
                }
                Action::Flip { to } => {
                    srcu_counts.flip_to(to); //~ no-flip
                    Some(Event::Flipped)
                }
                Action::HandOut { .. } => Some(Event::HandedOut),
            };
            if !state.still_drives(driver) {
                return;
            }
            if let Some(event) = event {
                self.srcu().report(state, event);
            }
        }
    }

    /// Does not stay the driver while it waits: it takes the steps that need no waiting, and sleeps
    /// like the other waiters.
    fn synchronize_within(
        &self,
        domain: &GracePeriods,
        urgency: Urgency,
        longest: Duration,
    ) -> bool {
        let began_ns = clock::monotonic_ns();
        let longest_ns = clock::ns(longest);
        let mut state = domain.lock();
        let cookie = state.request(urgency);
        let aim = (Until::MustWait { tick: false }, Me::NOBODY);
        let (mut driver, mut patience) = (None, Patience::NEW);
        let is_over = loop {
            if !state.driven {
                driver = Some(state.begin_term(aim.0, aim.1));
            }
            if let Some(driver) = driver.take() {
                domain.drive(&mut state, driver);
            }
            if state.machine().sequence().is_done(cookie) {
                break true;
            }
            let now_ns = clock::monotonic_ns();
            let left_ns = longest_ns.saturating_sub(now_ns.saturating_sub(began_ns));
            if left_ns == 0 {
                break false;
            }
            let nap_ns = state.put_off_until_ns.saturating_sub(now_ns).min(left_ns);
            if state.driven {
                domain.counters().sleeps.fetch_add(1, Relaxed); // a statistic
                let left = Some(Duration::from_nanos(left_ns));
                driver = domain.await_turn(&mut state, &mut patience, aim, left);
            } else if nap_ns != 0 {
                domain.counters().sleeps.fetch_add(1, Relaxed);
                state.wait_as_sleeper(Duration::from_nanos(nap_ns));
            }
        };
        drop(state);
        domain.unlocked_again();
        is_over
    }

    fn unfinished(&self, domain: &GracePeriods) -> Option<Unfinished> {
        let state = domain.lock();
        if !state.machine().sequence().in_progress() {
            return None;
        }
        let srcu_counts = self.srcu_counts.get();
        let index = srcu_counts.other_index(); // under the lock no thread flips them
        let unlocks = srcu_counts.unlocks(index);
        fence::full(); // only told: a section more or less does no harm
        let sections = srcu_counts.locks(index).saturating_sub(unlocks);
        Some(Unfinished { sections, slots: srcu_counts.balances(index) })
    }

    fn oldest_guard(&self) -> Option<(Live, usize)> {
        track::oldest(self.srcu_counts.get().address())
    }
}

impl SrcuState {
    /// What is to be done for the domain's grace period in progress; nothing once it can end.
    fn next(&mut self, state: &mut Locked<'_>) -> Action {
        if state.begin(true) {
            self.cookie = self.machine.snapshot(); // [SR-3]
            self.ticked_ns = clock::monotonic_ns();
        }
        self.hear_urgency(state);
        self.machine.pending()
    }

    /// Tells the machine what its driver has seen or done; and first, how urgent it is by now: a
    /// thread may have come meanwhile, and the machine says next how long it waits.
    fn report(&mut self, state: &Locked<'_>, event: Event) {
        self.hear_urgency(state);
        self.machine.observe(event).expect("each action is answered by its own event");
    }

    /// For the delay function a thread that waits is in a hurry, and callbacks are not.
    fn hear_urgency(&mut self, state: &Locked<'_>) {
        let urgency = match state.machine().urgency() {
            Urgency::Background => Urgency::Normal,
            Urgency::Normal | Urgency::Expedited => Urgency::Expedited,
        };
        self.machine.require(self.cookie, urgency).expect("the machine's own cookie");
    }

    /// How long the next run is still put off. Tells the machine of ticks if it is not.
    fn until_run(&mut self, state: &Locked<'_>) -> Option<Duration> {
        if state.put_off_until_ns == 0 {
            return None;
        }
        let now_ns = clock::monotonic_ns();
        if now_ns < state.put_off_until_ns {
            return Some(Duration::from_nanos(state.put_off_until_ns - now_ns));
        }
        let jiffies = now_ns / JIFFY_NS - (self.ticked_ns / JIFFY_NS).min(now_ns / JIFFY_NS);
        self.ticked_ns = now_ns;
        self.machine.tick(u32::try_from(jiffies).unwrap_or(u32::MAX));
        None
    }
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
fn nap(domain: &GracePeriods, state: &mut Locked<'_>, driver: &Driver, left: Duration) {
    if domain.is_superseded(driver) || state.put_off_until_ns == 0 {
        return; // another thread has come while a report was made
    }
    domain.counters().sleeps.fetch_add(1, Relaxed); // a statistic
    state.conduct.away = Away::naps(left);
    state.wait(left);
}

fn ns(wait: Wait) -> u64 {
    match wait {
        Wait::Jiffies(jiffies) => u64::from(jiffies) * JIFFY_NS,
        Wait::Microseconds(microseconds) => u64::from(microseconds) * 1_000,
    }
}

#[cfg(test)]
mod tests {
    use grace::Start;

    use super::*;
    use crate::gp::engine::{Engine, Settings};

    /// A past error: the machine heard of a thread that had come during a check only after it had
    /// put the next run off, by ten milliseconds.
    #[test]
    fn a_thread_that_comes_during_a_check_waits_no_longer_than_one_that_came_before() {
        let settings = Settings { policy: Engine::Poll.policy(), ..Settings::DEFAULT };
        let domain = GracePeriods::new(Start::ZERO, settings);
        let start = Sequence::after(0);
        let machine = SrcuMachine::new(DELAY, start);
        let mut srcu = SrcuState { machine, cookie: Cookie::done_at(start), ticked_ns: 0 };
        let mut state = domain.lock();
        state.request(Urgency::Background);
        assert_eq!(state.poll(), grace::Action::Fence);
        assert!(matches!(srcu.next(&mut state), Action::Queue(_)));
        srcu.report(&state, Event::Queued);
        assert_eq!(srcu.next(&mut state), Action::Await);
        srcu.report(&state, Event::Runs);
        (0..12).for_each(|_| srcu.machine.tick(1));
        assert!(matches!(srcu.next(&mut state), Action::Check { .. }));
        state.request(Urgency::Expedited);
        srcu.report(&state, Event::Checked { drained: false });
        assert_eq!(srcu.next(&mut state), Action::Queue(Wait::Microseconds(50)));
    }
}
