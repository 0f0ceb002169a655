//! A list of callbacks in segments, by the grace period that they wait for. Counts only: their
//! owner keeps the callbacks themselves.
//!
//! The kernel's `rcu_segcblist`: *done* (its grace period has ended), *wait* and *next-ready* (each
//! tagged with a cookie), *next* (not tagged yet). Two tagged segments are enough, since at any
//! time only two cookies are pending: that of the grace period in progress, and the next one's.

use crate::sequence::{Cookie, Sequence};

/// Callbacks that wait for one grace period.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Tagged {
    count: u64,
    cookie: Cookie,
}

/// A list of callbacks, the oldest in front. Its size does not depend on the counts.
///
/// ```
/// use grace::{Segments, Sequence};
///
/// let mut sequence = Sequence::after(0);
/// let mut list = Segments::new(sequence);
/// list.push(3);
/// list.accelerate(sequence.snapshot());
/// sequence = sequence.begin().end();
/// list.advance(sequence);
/// assert_eq!(list.ready(), 3);
/// list.take(2);
/// assert_eq!(list.len(), 1);
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Segments {
    done: u64,
    /// *wait* and *next-ready*; the first has the older cookie.
    tagged: [Tagged; 2],
    next: u64,
}

impl Segments {
    /// No callbacks.
    pub const fn new(sequence: Sequence) -> Self {
        let empty = Tagged { count: 0, cookie: Cookie::done_at(sequence) };
        Self { done: 0, tagged: [empty; 2], next: 0 }
    }

    /// How many there are.
    pub const fn len(&self) -> u64 {
        let tagged = self.tagged[0].count.saturating_add(self.tagged[1].count);
        self.done.saturating_add(tagged).saturating_add(self.next)
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.done | self.tagged[0].count | self.tagged[1].count | self.next == 0
    }

    /// How many can be run.
    pub const fn ready(&self) -> u64 {
        self.done
    }

    /// Whether some are not tagged: no grace period was asked for on their behalf yet.
    pub const fn has_untagged(&self) -> bool {
        self.next != 0
    }

    /// Adds `count` untagged callbacks. (Counts saturate.)
    pub fn push(&mut self, count: u64) {
        self.next = self.next.saturating_add(count);
    }

    /// Removes `count` of the ready callbacks, which have been run.
    pub fn take(&mut self, count: u64) {
        self.done = self.done.saturating_sub(count);
    }

    /// Makes those ready whose grace period has ended.
    pub fn advance(&mut self, sequence: Sequence) {
        while self.tagged[0].count != 0 && sequence.is_done(self.tagged[0].cookie) {
            self.done = self.done.saturating_add(self.tagged[0].count);
            self.tagged = [self.tagged[1], Tagged { count: 0, ..self.tagged[1] }];
        }
    }

    /// The cookie of the oldest callbacks that are not ready; `None` if there are none, or if they
    /// are not tagged.
    pub fn awaited(&self) -> Option<Cookie> {
        self.tagged.iter().find(|one| one.count != 0).map(|one| one.cookie)
    }

    /// Makes all callbacks ready, whatever they wait for: for a mutant, or if no reader is left.
    pub fn advance_all(&mut self) {
        self.done = self.len();
        self.tagged[0].count = 0;
        self.tagged[1].count = 0;
        self.next = 0;
    }

    /// Tags the untagged callbacks with `cookie`. They join those that were tagged last if these
    /// have the same cookie, or a later one, which stays. Returns whether `cookie`, or the later
    /// one, is waited for: then the caller must ask for the grace period. If both tagged segments
    /// have older cookies there is no room: returns false, and the untagged ones stay untagged
    /// until one of those grace periods has ended.
    pub fn accelerate(&mut self, cookie: Cookie) -> bool {
        let last = self.tagged.iter().rposition(|one| one.count != 0);
        let joins = last.filter(|last| self.tagged[*last].cookie.is_at_or_after(cookie));
        let place = joins.unwrap_or_else(|| last.map_or(0, |last| last + 1));
        let Some(one) = self.tagged.get_mut(place) else { return false };
        if one.count == 0 && self.next != 0 {
            one.cookie = cookie;
        }
        one.count = one.count.saturating_add(core::mem::take(&mut self.next));
        one.count != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A past error: an empty segment got the cookie, so an explorer that compares states took
    /// lists for different that were the same to their owner.
    #[test]
    fn where_nothing_is_tagged_nothing_changes() {
        let sequence = Sequence::after(0);
        let mut segments = Segments::new(sequence);
        let empty = segments.clone();
        assert!(!segments.accelerate(sequence.snapshot()));
        assert_eq!(segments, empty);
        segments.push(1);
        assert!(segments.accelerate(sequence.snapshot()));
        let tagged = segments.clone();
        assert!(!segments.accelerate(sequence.begin().end().begin().snapshot()));
        assert_eq!(segments, tagged);
    }
}
