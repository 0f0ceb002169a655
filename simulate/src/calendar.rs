//! When a lock is held, if visitors do not arrive in the order of their times.
//!
//! CPUs are simulated one after the other, and each is ahead of the clock by the duration of its
//! call of the engine: a CPU that frees ten thousand objects in a call is milliseconds ahead when
//! the next one begins. So a visitor's time may fall before, between or into times at which CPUs
//! simulated earlier hold the lock. The lock's time is allotted like a calendar's: a visitor gets
//! the next free time from its own time on, in several pieces if one is not enough. So the lock is
//! never idle while a visitor waits, and no time is allotted twice; only the order among several
//! waiting visitors differs from that of a queue.

use std::collections::VecDeque;
use std::ops::Range;

use crate::events::Time;

/// The times at which a lock is held.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calendar {
    /// From when to when, in order; there is a gap between each and the next.
    held: VecDeque<(Time, Time)>,
}

impl Calendar {
    /// How long a CPU that wants the lock at `now`, for `hold`, would wait for it.
    pub(crate) fn ahead(&self, now: Time, hold: Time) -> Time {
        self.find(now, hold).1 - now - hold
    }

    /// Where in the calendar a visit at `now` for `hold` lies, and when it is over.
    fn find(&self, now: Time, hold: Time) -> (Range<usize>, Time) {
        let first = self.held.partition_point(|&(_, to)| to < now);
        let (mut next, mut at, mut left) = (first, now, hold);
        while let Some(&(from, to)) = self.held.get(next) {
            let free = from.saturating_sub(at);
            if free >= left {
                break;
            }
            left -= free;
            at = to;
            next += 1;
        }
        (first..next, at + left)
    }

    /// A CPU wants the lock at `now`, for `hold`. Returns how long it waits. No visitor will come
    /// at a time before `past` any more.
    pub(crate) fn take(&mut self, now: Time, hold: Time, past: Time) -> Time {
        while self.held.front().is_some_and(|&(_, to)| to < past) {
            self.held.pop_front();
        }
        if hold == 0 {
            return 0;
        }
        // Neighbours without a gap become one, so that a crowded lock has few entries.
        let (Range { start, mut end }, done) = self.find(now, hold);
        let from = if start < end { self.held[start].0.min(now) } else { now };
        let mut to = done;
        if let Some(&(_, after)) = self.held.get(end).filter(|(from, _)| *from == done) {
            to = after;
            end += 1;
        }
        self.held.drain(start..end);
        self.held.insert(start, (from, to));
        done - now - hold
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    /// No two entries touch, and they are in order.
    fn check(calendar: &Calendar) {
        let held: Vec<_> = calendar.held.iter().collect();
        assert!(held.iter().all(|(from, to)| from < to), "{held:?}");
        assert!(held.windows(2).all(|pair| pair[0].1 < pair[1].0), "{held:?}");
    }

    fn held(calendar: &Calendar) -> Time {
        calendar.held.iter().map(|(from, to)| to - from).sum()
    }

    #[test]
    fn visitors_in_the_order_of_their_times_stand_in_a_queue() {
        let mut calendar = Calendar::default();
        let waits = [0, 4, 8, 20, 30].map(|now| calendar.take(now, 10, 0));
        assert_eq!(waits, [0, 6, 12, 10, 10]);
        assert_eq!(calendar.take(60, 10, 0), 0);
        check(&calendar);
    }

    /// The fault that was: who came before all that is held waited for none of it, however long
    /// its own visit.
    #[test]
    fn a_lock_that_is_held_later_is_waited_for() {
        let mut calendar = Calendar::default();
        for visit in 0..100 {
            assert_eq!(calendar.take(1_000 + visit * 10, 10, 0), 0);
        }
        // One that was simulated later, at an earlier time: 4 ns are free, then none for 1,000.
        assert_eq!(calendar.take(996, 10, 0), 1_000);
        assert_eq!(calendar.take(900, 10, 0), 0);
        check(&calendar);
    }

    #[test]
    fn gaps_are_used_and_no_time_is_given_out_twice() {
        let mut calendar = Calendar::default();
        for visit in 0..10 {
            calendar.take(visit * 10, 5, 0);
        }
        // Two pieces of 5, between others of 5.
        assert_eq!(calendar.take(5, 10, 0), 5);
        assert_eq!(calendar.take(0, 5, 0), 25);
        check(&calendar);
        let mut random = Random::new(5);
        let mut calendar = Calendar::default();
        let mut given = 0;
        for _ in 0..2_000 {
            let (now, hold) = (random.below(50_000), 1 + random.below(30));
            calendar.take(now, hold, 0);
            given += hold;
            check(&calendar);
            assert_eq!(held(&calendar), given);
        }
    }

    /// In whatever order CPUs are simulated, all of them together wait as long.
    #[test]
    fn the_wait_of_all_does_not_hang_on_the_order_of_simulation() {
        let total = |order: &[u64]| -> Time {
            let mut calendar = Calendar::default();
            order.iter().map(|now| calendar.take(*now, 10, 0)).sum()
        };
        let mut random = Random::new(9);
        let mut visits: Vec<u64> = (0..1_000).map(|_| random.below(12_000)).collect();
        let shuffled = total(&visits);
        visits.sort_unstable();
        let in_order = total(&visits);
        assert!(in_order > 10_000, "five sixths are taken: {in_order}");
        assert!(shuffled.abs_diff(in_order) < in_order / 3, "{shuffled} and {in_order}");
    }

    #[test]
    fn the_past_is_forgotten_and_nothing_else() {
        let mut calendar = Calendar::default();
        for visit in 0..10 {
            calendar.take(visit * 100, 10, 0);
        }
        assert_eq!(calendar.take(505, 10, 500), 5);
        assert_eq!(calendar.held.len(), 5);
        assert_eq!(calendar.take(2_000, 0, 2_000), 0, "no visit at all");
    }
}
