//! A queue of events in virtual time.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time, in nanoseconds since the run began.
pub type Time = u64;

/// Events in the order of their times; those of one time in the order they were scheduled in.
#[derive(Clone, Debug)]
pub struct Events<E> {
    heap: BinaryHeap<Reverse<Entry<E>>>,
    now: Time,
    scheduled: u64,
}

#[derive(Clone, Debug)]
struct Entry<E> {
    at: Time,
    order: u64,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}

impl<E> Default for Events<E> {
    fn default() -> Self {
        Self::new()
    }
}

impl<E> Events<E> {
    /// None, at time 0.
    pub const fn new() -> Self {
        Self { heap: BinaryHeap::new(), now: 0, scheduled: 0 }
    }

    /// The time of the event that was taken last.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event, not before now.
    pub fn at(&mut self, at: Time, event: E) {
        self.heap.push(Reverse(Entry { at: at.max(self.now), order: self.scheduled, event }));
        self.scheduled += 1;
    }

    /// Schedules an event so many nanoseconds from now.
    pub fn after(&mut self, delay: Time, event: E) {
        self.at(self.now.saturating_add(delay), event);
    }

    /// Takes the next event, if it is not after `until`. Time moves on to it.
    pub fn next(&mut self, until: Time) -> Option<E> {
        self.heap.peek().filter(|entry| entry.0.at <= until)?;
        let Reverse(entry) = self.heap.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_in_order_of_time_and_then_of_scheduling() {
        let mut events = Events::new();
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
