//! Which grace periods are wanted, and how urgently; when the next one begins, and what is done
//! between two scans.
//!
//! [`Machine`](crate::Machine) asks, and says how far its sequence has come. An error here begins a
//! grace period that nobody wants, or begins none that is wanted; no grace period ends by what is
//! decided here.

use crate::policy::{Begin, Hint, Looks, Policy, Urgency};
use crate::sequence::{Cookie, Sequence};

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Requests<P> {
    pub(crate) policy: P,
    /// The latest grace period requested with each [`Urgency`], or more.
    needed: [Cookie; 3],
    /// A grace period is wanted, and begins at the next tick.
    pub(crate) is_deferred: bool,
    /// Scans of this pass that found holdouts.
    pub(crate) looks: Looks,
}

impl<P: Policy> Requests<P> {
    pub(crate) const fn new(policy: P, sequence: Sequence) -> Self {
        let needed = [Cookie::done_at(sequence); 3];
        Self { policy, needed, is_deferred: false, looks: Looks::NONE }
    }

    pub(crate) fn need(&mut self, cookie: Cookie, urgency: Urgency) {
        for needed in &mut self.needed[..=urgency as usize] {
            if cookie.is_at_or_after(*needed) {
                *needed = cookie;
            }
        }
    }

    /// Whether a grace period that has not ended was requested with so much urgency, or more.
    pub(crate) fn needs(&self, sequence: Sequence, urgency: Urgency) -> bool {
        !sequence.is_done(self.needed[urgency as usize])
    }

    pub(crate) fn urgency(&self, sequence: Sequence) -> Urgency {
        if self.needs(sequence, Urgency::Expedited) {
            Urgency::Expedited
        } else if self.needs(sequence, Urgency::Normal) {
            Urgency::Normal
        } else {
            Urgency::Background
        }
    }

    /// Whether an idle machine begins a grace period now.
    pub(crate) fn begins(&mut self, sequence: Sequence) -> bool {
        let begin = self
            .needs(sequence, Urgency::Background)
            .then(|| self.policy.begin(self.urgency(sequence)));
        self.is_deferred |= begin == Some(Begin::AtTick);
        begin == Some(Begin::Now)
    }

    pub(crate) fn begin_pass(&mut self, sequence: Sequence) {
        let urgency = self.urgency(sequence);
        self.looks.begin_pass(&self.policy, urgency);
    }

    /// What a driver does before it scans again.
    pub(crate) fn hint(&self, sequence: Sequence) -> Hint {
        self.looks.hint(&self.policy, self.urgency(sequence))
    }
}
