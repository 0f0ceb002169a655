//! The hand-over: a waiter, or a thread that passes by, takes the place of a driver that makes no
//! progress. [`grace::handover`] decides when.
//!
//! Drivers have numbered terms. A driver whose term is not the current one notices that at its next
//! step, discards its result, and is a waiter again.

use grace::Cookie;
use grace::handover::{PassersPatience, Patience};

use super::driving::Drive;
use super::world::{Frame, Next, ThreadId, World};
use crate::events::Time;

/// What the driver is at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Away {
    /// It fences, scans, or looks at holdouts.
    Works,
    /// It naps for so long.
    Naps(Time),
    /// It sleeps until the holdouts have left.
    Sleeps,
}

/// How far the current driver has come, and what others have seen of it.
#[derive(Clone, Debug)]
pub(super) struct Conduct {
    pub(super) term: u64,
    pub(super) steps: u64,
    pub(super) away: Away,
    passers: PassersPatience,
}

impl Conduct {
    pub(super) const fn new() -> Self {
        Self { term: 0, steps: 0, away: Away::Works, passers: PassersPatience::NEW }
    }

    const fn least_ns(&self) -> Time {
        match self.away {
            Away::Naps(ns) => ns,
            Away::Works | Away::Sleeps => 0,
        }
    }
}

/// A waiter: it drives, or looks on while another thread does.
#[derive(Clone, Copy, Debug)]
pub(super) struct LooksOn {
    cookie: Cookie,
    patience: Patience,
    step: Step,
}

#[derive(Clone, Copy, Debug)]
enum Step {
    Looks,
    /// Among the followers, for so long.
    Sleeps(Time),
}

impl LooksOn {
    pub(super) const fn new(cookie: Cookie) -> Self {
        Self { cookie, patience: Patience::NEW, step: Step::Looks }
    }
}

impl World<'_> {
    /// Waits until the cookie's grace period has ended.
    pub(super) fn look_on(&mut self, id: ThreadId, frame: &mut LooksOn) -> Next {
        match frame.step {
            Step::Looks => {}
            Step::Sleeps(ns) => {
                frame.step = Step::Looks;
                let followers = self.domain.followers.len();
                self.domain.followers.retain(|follower| *follower != id);
                let was_notified = followers == self.domain.followers.len();
                let (steps, least_ns) = (self.domain.conduct.steps, self.domain.conduct.least_ns());
                let has_run_out = !was_notified && frame.patience.slept(steps, ns, least_ns);
                if has_run_out && self.domain.driven && !self.is_asleep() {
                    return self.take_over(id, frame.cookie);
                }
            }
        }
        let sequence = self.domain.machine.sequence();
        if sequence.is_done(frame.cookie) {
            return Next::Done;
        }
        if !self.domain.driven {
            let term = self.begin_term();
            return Next::Call(Frame::Drive(Drive::until(frame.cookie, self.own(id), term)));
        }
        let sleepers = self.domain.followers.len();
        let conduct = &self.domain.conduct;
        let ns =
            frame.patience.left_ns(conduct.steps, sequence.ended(), sleepers, conduct.least_ns());
        self.domain.followers.push(id);
        frame.step = Step::Sleeps(ns);
        Next::SleepFor(ns)
    }

    fn take_over(&mut self, id: ThreadId, cookie: Cookie) -> Next {
        self.end_term();
        Next::Call(Frame::Drive(Drive::until(cookie, self.own(id), self.begin_term()).taken_over()))
    }

    /// One who does not wait comes by, and finds a driver. Returns whether that makes no progress:
    /// its term is over then.
    pub(super) fn supersede_in_passing(&mut self) -> bool {
        let now = self.events.now();
        let ended = self.domain.machine.sequence().ended();
        let conduct = &mut self.domain.conduct;
        let (steps, least_ns) = (conduct.steps, conduct.least_ns());
        if !conduct.passers.has_run_out(now, steps, ended, least_ns) || self.is_asleep() {
            return false;
        }
        self.domain.conduct.passers.took_over();
        self.end_term();
        true
    }

    /// Whether the driver sleeps until holdouts leave, and some have not.
    fn is_asleep(&self) -> bool {
        self.domain.conduct.away == Away::Sleeps && self.domain.marks != 0
    }

    /// The marks of the driver at work are taken away, and its sleep ends.
    fn end_term(&mut self) {
        self.counted.hand_overs += 1;
        self.domain.conduct.steps += 1;
        self.domain.holdouts.iter().for_each(|&at| self.readers[at].marked = false);
        self.domain.marks = 0;
        if let Some(sleeper) = self.domain.sleeper.take() {
            self.wake_at_cost(sleeper);
        }
    }

    /// A new driver's number.
    pub(super) const fn begin_term(&mut self) -> u64 {
        self.domain.driven = true;
        self.domain.conduct.term += 1;
        self.domain.conduct.away = Away::Works;
        self.domain.conduct.term
    }
}
