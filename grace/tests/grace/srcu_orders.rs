//! The SRCU machine in every order of requests, ticks and events, with checks that find whatever
//! they like: a cookie is done exactly when a grace period that began after it has ended, neither
//! later nor sooner; and every request is served if checks succeed in the end, whatever the ticks,
//! for each delay function. (With readers and memory: `verify/explore/src/srcu.rs`.)

use std::collections::HashSet;

use grace::Urgency;
use grace::srcu::{
    Action, AdaptiveDelay, AnyDelay, Cookie, Event, Phase, Published, STEPS, Sequence, SrcuMachine,
};
use grace::steps::Without;

use crate::srcu::answer;

/// Requests, and ticks. Few of each, or there are very many states.
const EACH: u8 = 3;

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    machine: SrcuMachine<AnyDelay, Without>,
    /// Whether the worker was queued.
    queued: bool,
    /// Requests and ticks that may still come.
    requests: u8,
    ticks: u8,
    /// Each cookie, with how many grace periods had begun when it was given.
    cookies: Vec<(Cookie, u8)>,
    begun: u8,
    /// How many had begun when the latest that has ended began, itself included.
    ended: u8,
}

impl State {
    /// Right before the sequence wraps.
    fn first(delay: AnyDelay, omitted: &'static str) -> Self {
        let start = Sequence::after(u64::MAX >> 1);
        Self {
            machine: SrcuMachine::with_steps(delay, start, Without(omitted)),
            queued: false,
            requests: EACH,
            ticks: EACH,
            cookies: Vec::new(),
            begun: 0,
            ended: 0,
        }
    }

    /// What comes next, with a check that succeeds or not.
    fn event(&self, drained: bool) -> Option<Event> {
        let pending = self.machine.pending();
        let waits = pending == Action::Await && !self.queued;
        if waits { None } else { answer(pending, drained) }
    }

    /// Takes one of five steps, if it is possible: a request, in a hurry or not; a tick; what comes
    /// next, with a check that fails or succeeds.
    fn take(&mut self, step: usize) -> Result<bool, &'static str> {
        let (was, phase) = (self.machine.sequence(), self.machine.phase());
        match step {
            0 | 1 if self.requests != 0 => {
                self.requests -= 1;
                let urgency = [Urgency::Normal, Urgency::Expedited][step];
                self.cookies.push((self.machine.request(urgency), self.begun));
            }
            2 if self.ticks != 0 => {
                self.ticks -= 1;
                self.machine.tick(1);
            }
            3 | 4 => {
                let Some(event) = self.event(step == 4) else { return Ok(false) };
                self.queued = event == Event::Queued;
                self.machine.observe(event).expect("it answers the pending action");
            }
            _ => return Ok(false),
        }
        let is = self.machine.sequence();
        if is.in_progress() == (self.machine.phase() == Phase::Idle) {
            return Err("the phase is not that of the sequence");
        }
        let has_ended = was.ended() != is.ended();
        if has_ended {
            self.ended = self.begun;
        }
        if self.machine.phase() != Phase::Idle && (phase == Phase::Idle || has_ended) {
            self.begun += 1;
        }
        for (cookie, begun) in &self.cookies {
            match (is.is_done(*cookie), self.ended > *begun) {
                (true, false) => return Err("a cookie is done, but no grace period has ended"),
                (false, true) => return Err("a cookie is not done, though one has ended"),
                _ => {}
            }
        }
        Ok(true)
    }

    /// Checks succeed from now on: what was requested is served, in far fewer steps than these.
    fn ends(mut self) -> Result<(), &'static str> {
        let mut left = 1_000;
        while left != 0 && self.take(4)? {
            left -= 1;
        }
        let is_served = |(cookie, _): &(Cookie, u8)| self.machine.sequence().is_done(*cookie);
        let is_idle = self.machine.pending() == Action::Idle;
        (is_idle && self.cookies.iter().all(is_served)).then_some(()).ok_or("stuck")
    }
}

/// How many states there are; or what is wrong with one.
fn explored(delay: AnyDelay, omitted: &'static str) -> Result<usize, &'static str> {
    let first = State::first(delay, omitted);
    let (mut seen, mut open) = (HashSet::from([first.clone()]), vec![first]);
    while let Some(state) = open.pop() {
        for step in 0..5 {
            let mut next = state.clone();
            if next.take(step)? && seen.insert(next.clone()) {
                open.push(next);
            }
        }
        state.ends()?;
    }
    Ok(seen.len())
}

#[test]
fn every_request_is_served_under_each_delay_function() {
    let few_looks = Published { no_delay_per_phase_max: Some(6), ..Published::final_at(250) };
    let few_runs = Published { runs_per_jiffy_max: Some(3), ..Published::BLOCK_REMOVED };
    let published =
        [Published::V5_18, Published::V5_19_RC1, Published::FIRST_DIFF, few_runs, few_looks];
    let adaptive = AdaptiveDelay { nap_us: 1_000, wait_jiffies_max: 2, ..AdaptiveDelay::at(250) };
    let delays =
        published.map(AnyDelay::Published).into_iter().chain([AnyDelay::Adaptive(adaptive)]);
    for delay in delays {
        let states = explored(delay, "none of them");
        println!("{delay:?}: {states:?} states");
        assert!(states.is_ok_and(|states| states > 5_000), "{delay:?}: {states:?}");
    }
}

#[test]
fn without_a_step_that_matters_here_one_is_not() {
    for step in STEPS {
        let found = explored(AnyDelay::Published(Published::V5_19_RC1), step);
        let matters = matches!(*step, "serve-later" | "requeue" | "begin-next");
        assert_eq!(found.is_err(), matters, "{step}: {found:?}");
    }
}
