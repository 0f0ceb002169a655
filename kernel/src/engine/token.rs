//! Engines that hand a token from CPU to CPU, at quiescent states only.
//!
//! [`Published`] is rcu_sched, with the counter of pending callbacks that all CPUs share, and a
//! latency that is as long as the slowest of them makes it, N times. [`Relay`] is the same idea
//! reworked. What both rest on are two small pure functions: [`Station::pass`] and [`relay`].

pub mod published;
pub mod v2;

pub use published::{ONE_COUNT, Published};
pub use v2::Relay;

use grace::Number;

use super::counters::is_after;

/// A CPU's place in the ring of rcu_sched.
///
/// Let d be the distance of a station behind its successor: the successor's `ring` + 1 - its own.
/// In a ring of N stations that all began with the same number, the distances sum to N for ever: a
/// station that passes takes its own distance to 0 and adds it to its predecessor's. So there are N
/// unit tokens, which only merge, and a station whose number has grown by N has seen every other
/// station pass after it, in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Station {
    /// Goes up as the token passes.
    pub ring: u32,
    /// What `ring` reaches when the batch that waits is safe to run.
    pub finished: u32,
}

/// What [`Station::pass`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Passed {
    /// The token is not here.
    Stayed,
    /// It has gone on to the predecessor.
    Hopped,
    /// It has, and all others have passed since the batch began to wait: that may be run, and the
    /// batch that was being filled waits from now on.
    CameRound,
}

impl Station {
    /// The station at a quiescent state, in a ring of `stations`, with a successor whose `ring` is
    /// `next`. Numbers may wrap. The step is that of rcu_sched's `schedule()`.
    pub const fn pass(&mut self, next: u32, stations: u32) -> Passed {
        let number = next.wrapping_add(1);
        if number == self.ring {
            return Passed::Stayed;
        }
        self.ring = number;
        if is_after(self.finished, number) {
            return Passed::Hopped;
        }
        self.finished = number.wrapping_add(stations);
        Passed::CameRound
    }
}

/// What a station of [`Relay`] at a quiescent state shows from now on: the number upstream, if that
/// is newer than its `own`. Numbers may wrap.
///
/// The argument: `upstream` says that all before this station have been quiescent since grace
/// period `upstream` began, and that it has begun; this station is quiescent now.
pub const fn relay(own: Number, upstream: Number) -> Option<Number> {
    if is_after(upstream.0, own.0) { Some(upstream) } else { None }
}
