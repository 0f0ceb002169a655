//! The machine by itself: no readers, no memory; a check finds whatever it likes.
//!
//! What can be seen here, and not in a few sections: that a cookie is done exactly when a grace
//! period that began after it has ended, neither later nor sooner, and that every request is served
//! if checks succeed in the end, whatever the ticks, for each delay function.

use grace::Urgency;
use grace::srcu::{Action, AnyDelay, Cookie, Event, Phase, Sequence, SrcuMachine};

use super::world::Omission;
use crate::choice::Choice;
use crate::system::Outcome;

/// What to explore. Few of each, or there are very many states.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Asked {
    /// The delay function.
    pub delay: AnyDelay,
    /// A step of the machine to leave out.
    pub omitted: Option<&'static str>,
    /// Where the sequence starts: right before its wrap is as good as anywhere.
    pub start: Sequence,
    /// Requests, at any time, each in a hurry or not.
    pub requests: u8,
    /// Ticks, at any time.
    pub ticks: u8,
}

/// Whose step it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Request,
    Tick,
    Driver,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Alone {
    machine: SrcuMachine<AnyDelay, Omission>,
    queued: bool,
    requests: u8,
    ticks: u8,
    /// Each cookie, with how many grace periods had begun when it was given.
    cookies: Vec<(Cookie, u8)>,
    begun: u8,
    /// How many had begun when the latest that has ended began, itself included.
    ended: u8,
}

impl Alone {
    /// All steps that may be possible.
    pub(super) const STEPS: [Step; 3] = [Step::Request, Step::Tick, Step::Driver];

    pub(super) fn new(asked: &Asked) -> Self {
        Self {
            machine: SrcuMachine::with_steps(asked.delay, asked.start, Omission(asked.omitted)),
            queued: false,
            requests: asked.requests,
            ticks: asked.ticks,
            cookies: Vec::new(),
            begun: 0,
            ended: 0,
        }
    }

    /// Takes a step; `told` is given what it did.
    pub(super) fn take(
        &mut self,
        step: Step,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        let was = self.machine.sequence();
        let left = match step {
            Step::Request => &mut self.requests,
            Step::Tick => &mut self.ticks,
            Step::Driver => &mut 1,
        };
        if *left == 0 {
            return Outcome::Blocked;
        }
        *left -= 1;
        let what = match step {
            Step::Request => {
                let urgency = [Urgency::Normal, Urgency::Expedited][choice.choose(2)];
                self.cookies.push((self.machine.request(urgency), self.begun));
                format!("request, {urgency:?}")
            }
            Step::Tick => {
                self.machine.tick(1);
                "tick".into()
            }
            Step::Driver => match self.drive(choice) {
                None => return Outcome::Blocked,
                Some(event) => format!("{event:?}"),
            },
        };
        if let Some(told) = told {
            told.push_str(&what);
        }
        self.follow(was)
    }

    /// Whether all is done.
    pub(super) fn is_end(&self) -> bool {
        let done = |(cookie, _): &(Cookie, u8)| self.machine.sequence().is_done(*cookie);
        self.requests == 0
            && self.machine.pending() == Action::Idle
            && self.cookies.iter().all(done)
    }

    fn drive(&mut self, choice: &mut Choice) -> Option<Event> {
        let event = match self.machine.pending() {
            Action::Idle => return None,
            Action::Await if !self.queued => return None,
            Action::Await => Event::Runs,
            Action::Queue(_) => Event::Queued,
            Action::Check { .. } => Event::Checked { drained: choice.choose(2) == 0 },
            Action::Spin { .. } => Event::Spun,
            Action::Flip { .. } => Event::Flipped,
            Action::HandOut { .. } => Event::HandedOut,
        };
        self.queued = event == Event::Queued;
        self.machine.observe(event).expect("it answers the pending action");
        Some(event)
    }

    /// Notes beginnings and ends, and asks every cookie.
    fn follow(&mut self, was: Sequence) -> Outcome {
        let is = self.machine.sequence();
        if was.ended() != is.ended() {
            self.ended = self.begun;
        }
        if is.phase() != Phase::Idle && (was.phase() == Phase::Idle || was.ended() != is.ended()) {
            self.begun += 1;
        }
        for (cookie, begun) in &self.cookies {
            let should = self.ended > *begun;
            if is.is_done(*cookie) != should {
                let what = if should { "not done, though" } else { "done, but no" };
                return Outcome::Violation(format!("a cookie is {what} grace period has ended"));
            }
        }
        Outcome::Moved
    }
}
