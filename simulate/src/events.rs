//! A queue of events in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time, in nanoseconds since the run began.
pub type Time = u64;

/// Events in the order of their times; those of one time in the order they were scheduled in.
#[derive(Clone, Debug)]
pub(crate) struct Events<E> {
    /// Each with its time and its number, of which no two are the same.
    heap: BinaryHeap<Reverse<(Time, u64, E)>>,
    now: Time,
    scheduled: u64,
}

impl<E: Ord> Default for Events<E> {
    /// None, at time 0.
    fn default() -> Self {
        Self { heap: BinaryHeap::new(), now: 0, scheduled: 0 }
    }
}

impl<E: Ord> Events<E> {
    /// The time of the event that was taken last.
    pub(crate) const fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event, not before now.
    pub(crate) fn at(&mut self, at: Time, event: E) {
        self.heap.push(Reverse((at.max(self.now), self.scheduled, event)));
        self.scheduled += 1;
    }

    /// Schedules an event so many nanoseconds from now.
    pub(crate) fn after(&mut self, delay: Time, event: E) {
        self.at(self.now.saturating_add(delay), event);
    }

    /// Takes the next event, if it is not after `until`. Time moves on to it.
    pub(crate) fn next(&mut self, until: Time) -> Option<E> {
        self.heap.peek().filter(|next| next.0.0 <= until)?;
        let Reverse((at, _, event)) = self.heap.pop()?;
        self.now = at;
        Some(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_scheduling() {
        let mut events = Events::default();
        events.at(20, 'c');
        events.at(10, 'a');
        events.at(10, 'b');
        events.at(30, 'd');
        let mut seen = Vec::new();
        while let Some(event) = events.next(25) {
            seen.push((events.now(), event));
        }
        assert_eq!(seen, [(10, 'a'), (10, 'b'), (20, 'c')]);
        events.at(1, 'e'); // the past is now
        assert_eq!((events.next(25), events.now()), (Some('e'), 20));
    }
}
