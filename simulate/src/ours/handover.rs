//! The hand-over: a waiter, or a thread that passes by, takes the place of a driver that makes no
//! progress. [`grace::handover`] decides when.
//!
//! Drivers have numbered terms. A driver whose term is not the current one notices that at its next
//! step, discards its result, and is a waiter again.

use grace::Cookie;
use grace::handover::{PassersPatience, Patience};

use super::driving::Domain;
use super::world::{Me, ThreadId, World};
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

impl World<'_> {
    /// A waiter is about to sleep while another thread drives. For how long at most; `None` if no
    /// thread drives.
    fn follow(&mut self, id: ThreadId, patience: &mut Patience) -> Option<Time> {
        let Domain { driven, conduct, machine, followers, .. } = &mut self.domain;
        let ended = machine.sequence().ended();
        let (steps, least_ns) = (conduct.steps, conduct.least_ns());
        driven.then(|| {
            let ns = patience.left_ns(steps, ended, followers.len(), least_ns);
            followers.push(id);
            ns
        })
    }

    /// It has slept for so long, or was woken. Returns whether the driver makes no progress: its
    /// term is over then.
    fn supersede(&mut self, id: ThreadId, patience: &mut Patience, slept_ns: Time) -> bool {
        let followers = self.domain.followers.len();
        self.domain.followers.retain(|follower| *follower != id);
        let was_notified = followers == self.domain.followers.len();
        let conduct = &self.domain.conduct;
        let has_run_out =
            !was_notified && patience.slept(conduct.steps, slept_ns, conduct.least_ns());
        let supersedes = has_run_out && self.domain.driven && !self.is_asleep();
        if supersedes {
            self.end_term();
        }
        supersedes
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

impl Me<'_, '_> {
    /// Waits until the cookie's grace period has ended: drives, or looks on while another thread
    /// does.
    pub(super) async fn look_on(self, cookie: Cookie) {
        let mut patience = Patience::NEW;
        while !self.world().domain.machine.sequence().is_done(cookie) {
            let follows = self.world().follow(self.id, &mut patience);
            let Some(ns) = follows else {
                self.drive(Some(cookie), false, false).await;
                continue;
            };
            self.sleep_for(ns).await;
            let supersedes = self.world().supersede(self.id, &mut patience, ns);
            if supersedes {
                self.drive(Some(cookie), false, true).await;
            }
        }
    }
}
