//! What happens next: a queue of events in virtual time.
//!
//! Thousands of CPUs have one or two events each, nearly all of them within some milliseconds: a
//! heap of them all does not fit into the cache that its sifting wants. So time is cut into short
//! spans; what is due in one of the next of these is thrown into the span's own list, unsorted, and
//! only the span that time has come to is a heap. What is due later waits in a heap of its own. (A
//! calendar queue: R. Brown, Communications of the ACM 31(10), 1988.)

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Virtual time, in nanoseconds since the run began.
pub type Time = u64;

/// A span's length, as a power of two: a microsecond.
const SPAN_BITS: u32 = 10;
/// Spans in the calendar: four milliseconds and a little.
const SPANS: u64 = 4_096;

/// Events in the order of their times; those of one time in the order they were scheduled in.
#[derive(Clone, Debug)]
pub struct Events<E> {
    /// The span that time has come to, and whatever is due earlier.
    due: BinaryHeap<Reverse<Entry<E>>>,
    /// The next `SPANS - 1` spans, each at its number modulo `SPANS`. Empty until it is needed.
    calendar: Vec<Vec<Reverse<Entry<E>>>>,
    /// How many events there are in the calendar.
    in_calendar: usize,
    later: BinaryHeap<Reverse<Entry<E>>>,
    /// The number of the span that time has come to.
    span: u64,
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
        (self.at, self.order) == (other.at, other.order)
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
        Self {
            due: BinaryHeap::new(),
            calendar: Vec::new(),
            in_calendar: 0,
            later: BinaryHeap::new(),
            span: 0,
            now: 0,
            scheduled: 0,
        }
    }

    /// The time of the event that was taken last.
    pub const fn now(&self) -> Time {
        self.now
    }

    /// Schedules an event, not before now.
    pub fn at(&mut self, at: Time, event: E) {
        let entry = Entry { at: at.max(self.now), order: self.scheduled, event };
        self.scheduled += 1;
        self.put(Reverse(entry));
    }

    /// Schedules an event so many nanoseconds from now.
    pub fn after(&mut self, delay: Time, event: E) {
        self.at(self.now.saturating_add(delay), event);
    }

    /// Takes the next event, if it is not after `until`. Time moves on to it.
    pub fn next(&mut self, until: Time) -> Option<E> {
        while self.due.is_empty() {
            self.turn(until >> SPAN_BITS)?;
        }
        if self.due.peek()?.0.at > until {
            return None;
        }
        let Reverse(entry) = self.due.pop()?;
        self.now = entry.at;
        Some(entry.event)
    }

    fn put(&mut self, entry: Reverse<Entry<E>>) {
        let span = entry.0.at >> SPAN_BITS;
        if span <= self.span {
            self.due.push(entry);
        } else if span - self.span < SPANS {
            if self.calendar.is_empty() {
                self.calendar.resize_with(SPANS as usize, Vec::new);
            }
            self.calendar[(span % SPANS) as usize].push(entry);
            self.in_calendar += 1;
        } else {
            self.later.push(entry);
        }
    }

    /// Continues with the next span that has events, if it is not after the span `until`.
    fn turn(&mut self, until: u64) -> Option<()> {
        let later = self.later.peek().map(|entry| entry.0.at >> SPAN_BITS);
        let next = match self.in_calendar {
            // All that is in the calendar is before what is later, unless time has come near that.
            0 => later?,
            _ => {
                let ahead = (1..SPANS).find(|ahead| {
                    !self.calendar[((self.span + ahead) % SPANS) as usize].is_empty()
                });
                later.unwrap_or(u64::MAX).min(self.span + ahead?)
            }
        };
        if next > until {
            return None;
        }
        self.span = next;
        if let Some(list) = self.calendar.get_mut((next % SPANS) as usize) {
            self.in_calendar -= list.len();
            self.due.extend(list.drain(..));
        }
        while self.later.peek().is_some_and(|entry| entry.0.at >> SPAN_BITS < next + SPANS) {
            let entry = self.later.pop()?;
            self.put(entry);
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

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

    /// Against a sorted list: near and far, in spans and between them, asked too early.
    #[test]
    fn the_calendar_gives_what_a_sorted_list_gives() {
        let mut random = Random::new(5);
        let (mut events, mut list) = (Events::new(), Vec::new());
        let mut number = 0;
        for _ in 0..20_000 {
            for _ in 0..random.below(3) {
                let near = 1 << random.below(27);
                let at = (events.now() + random.below(near)).saturating_sub(500);
                events.at(at, number);
                list.push((at.max(events.now()), number));
                number += 1;
            }
            list.sort_unstable();
            let until = events.now() + random.below(1 << 22);
            let expected = list.first().filter(|(at, _)| *at <= until).copied();
            assert_eq!(events.next(until), expected.map(|(_, number)| number));
            if let Some((at, _)) = expected {
                assert_eq!(events.now(), at);
                list.remove(0);
            }
        }
        assert!(number > 10_000 && list.len() < number);
    }
}
