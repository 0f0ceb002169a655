//! The machine by itself: no readers, no memory; a check finds whatever it likes.
//!
//! What can be seen here, and not in a few sections: that a cookie is done exactly when a grace
//! period that began after it has ended, neither later nor sooner, and that every request is served
//! if checks succeed in the end, whatever the ticks, for each delay function.

use grace::Urgency;
use grace::srcu::{Action, AnyDelay, Cookie, Event, Phase, Sequence, SrcuMachine};
use grace::steps::Without;

use crate::choice::Choice;
use crate::explore::{self, Verdict};
use crate::system::{By, Outcome, System};

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

/// Explores the machine by itself: every order of requests, ticks and events within what is
/// `asked`.
pub fn explore_alone(asked: &Asked, limit: usize) -> Verdict {
    explore::run(asked, limit)
}

const REQUEST: u16 = 0;
const TICK: u16 = 1;
const DRIVER: u16 = 2;

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Alone {
    machine: SrcuMachine<AnyDelay, Without>,
    queued: bool,
    requests: u8,
    ticks: u8,
    /// Each cookie, with how many grace periods had begun when it was given.
    cookies: Vec<(Cookie, u8)>,
    begun: u8,
    /// How many had begun when the latest that has ended began, itself included.
    ended: u8,
}

impl System for Asked {
    type State = Alone;

    fn first(&self) -> Alone {
        Alone {
            machine: SrcuMachine::with_steps(
                self.delay,
                self.start,
                Without(self.omitted.unwrap_or_default()),
            ),
            queued: false,
            requests: self.requests,
            ticks: self.ticks,
            cookies: Vec::new(),
            begun: 0,
            ended: 0,
        }
    }

    fn steps(&self) -> u16 {
        DRIVER + 1
    }

    fn take(&self, alone: &mut Alone, step: u16, by: By<'_>) -> Outcome {
        let was = alone.machine.sequence();
        let left = match step {
            REQUEST => &mut alone.requests,
            TICK => &mut alone.ticks,
            _ => &mut 1,
        };
        if *left == 0 {
            return Outcome::Blocked;
        }
        *left -= 1;
        let what = match step {
            REQUEST => {
                let urgency = [Urgency::Normal, Urgency::Expedited][by.choice.choose(2)];
                alone.cookies.push((alone.machine.request(urgency), alone.begun));
                format!("request, {urgency:?}")
            }
            TICK => {
                alone.machine.tick(1);
                "tick".into()
            }
            _ => match alone.drive(by.choice) {
                None => return Outcome::Blocked,
                Some(event) => format!("{event:?}"),
            },
        };
        if let Some(told) = by.told {
            told.push_str(&what);
        }
        alone.follow(was)
    }

    /// Whether all is done.
    fn is_end(&self, alone: &Alone) -> bool {
        let done = |(cookie, _): &(Cookie, u8)| alone.machine.sequence().is_done(*cookie);
        alone.requests == 0
            && alone.machine.pending() == Action::Idle
            && alone.cookies.iter().all(done)
    }
}

impl Alone {
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
