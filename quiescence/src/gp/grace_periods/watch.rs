//! When the grace period in progress began, and checks of its age: by a driver before it waits and
//! after its sleep, by the waiters, and by the worker.
//!
//! A grace period that need not wait costs nothing here, and neither does an immediate rescan. A
//! thread that sleeps wakes when the next report is due, and leaves a note for the reporter then.

use std::time::Duration;

use grace::Urgency;

use super::{GracePeriods, Locked};
use crate::event::trace;
use crate::gp::stall::{Current, Note};
use crate::os::clock;

impl Locked<'_> {
    /// Records the beginning of a grace period, once: an earlier driver may have done so. Reads the
    /// clock only if `timed`. Returns whether this call recorded it.
    pub(crate) fn begin(&mut self, timed: bool) -> bool {
        let (sequence, urgency) = (self.machine().sequence(), self.machine().urgency());
        let number = Some(sequence.ended().wrapping_add(1));
        if self.current.number == number || !sequence.in_progress() {
            return false;
        }
        let began_ns = timed.then(clock::monotonic_ns);
        let expedited = urgency == Urgency::Expedited;
        self.current = Current { number, began_ns, expedited, ..Current::NONE };
        trace::grace_period_began(self.domain().source(), sequence, urgency);
        true
    }
}

impl GracePeriods {
    /// Has a report made if one is due. Returns for how long no other check is needed.
    pub(crate) fn watched(&self, state: &mut Locked<'_>) -> Option<Duration> {
        let (note, left) = self.look_at_age(state);
        if let Some(note) = note {
            state.unlocked(|| (crate::HOOKS.stalled)(note));
        }
        left
    }

    pub(super) fn look_at_age(&self, state: &mut Locked<'_>) -> (Option<Note>, Option<Duration>) {
        if !state.machine().sequence().in_progress() || state.current.waits_since_ns.is_none() {
            return (None, None);
        }
        let now_ns = clock::monotonic_ns();
        let expedited = state.machine().urgency() == Urgency::Expedited;
        let limit_ns = self.tuning.stall_after_ns(expedited);
        let note = state.current.take_due(now_ns, limit_ns).map(|age_ns| {
            // It is in progress, so one more than have ended.
            let grace_period = state.machine().sequence().ended().wrapping_add(1);
            trace::stalled(self.source(), grace_period, age_ns, state.current.holdouts as u64);
            let (core, identity) = (std::ptr::from_ref(self).cast(), self.observers.identity());
            Note { core, identity, grace_period, age_ns, expedited }
        });
        let due_ns = state.current.due_ns(limit_ns);
        (note, due_ns.map(|due_ns| Duration::from_nanos(due_ns.saturating_sub(now_ns))))
    }

    /// For a driver that sleeps without the lock: as [`watched`](Self::watched).
    pub(crate) fn watched_asleep(&self) -> Option<Duration> {
        self.watched(&mut self.lock())
    }

    /// For the worker: has a report made if one is due, whichever thread drives. If another thread
    /// holds the lock, the next tick checks again.
    pub(crate) fn look_for_stall(&self) {
        if let Some(mut state) = self.try_lock() {
            self.watched(&mut state);
        }
    }
}
