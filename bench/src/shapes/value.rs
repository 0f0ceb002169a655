//! The object that is read and replaced: a stamp, and words that follow from it.
//!
//! A value knows which key it belongs to and which update made it, and each of its words can be
//! checked against that. So a reader sees a value that was torn, freed while it was read, or
//! stored under another key; no design can win by being wrong.
//!
//! It owns memory of its own, as real values do (a list of routes, a string). Designs that keep
//! values in place (locks) thus reach the words by one pointer, and designs that publish a pointer
//! by two, which is the difference they also have in a real program.
//!
//! The words are atomics, read and written relaxed: free on x86, and what a wrong design does to
//! its readers is then a wrong number that the tests can look for, and not undefined behaviour.

use std::sync::atomic::{AtomicU64, Ordering};

use quiescence::sync::Counter;

/// The counts of one prepared design: of values that were replaced, and of those that were freed.
///
/// What a design has not reclaimed yet is measured the same way for all of them: by what the values
/// themselves report when they are dropped, not by what a library says of itself. Each CPU counts
/// in a word of its own, so that counting does not become the contention that is being measured.
///
/// Made by [`Ledger::leak`] and never freed: values that a design has not freed when it is dropped
/// still report to it. In lines of its own: each operation looks here for its CPU's words, and the
/// design, which is allocated next, may write to its neighbours all the time.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Ledger {
    pub(crate) replaced: Counter,
    /// All that were ever freed, replaced or not.
    pub(crate) freed: Counter,
    /// Updates of the threads that are done.
    pub(crate) updates: AtomicU64,
}

impl Ledger {
    pub(crate) fn leak() -> &'static Self {
        Box::leak(Box::default())
    }

    /// Values replaced and not yet freed. While others count, this may be too small by what they
    /// free between the two sums, and never invents garbage for a design that frees at once.
    pub(crate) fn unreclaimed(&self) -> u64 {
        let replaced = self.replaced.sum();
        (replaced - self.freed.sum()).max(0).cast_unsigned()
    }
}

/// The stamp of a value that was dropped. No key has the number that its upper half names.
const FREED: u64 = u64::MAX;

/// A value of one key.
pub(crate) struct Value {
    /// Key in the upper half, serial number of the update in the lower half.
    stamp: AtomicU64,
    words: Box<[AtomicU64]>,
    ledger: &'static Ledger,
}

impl quiescence::Weigh for Value {
    fn owned(&self) -> usize {
        self.words.owned()
    }
}

impl Value {
    /// The value that update number `serial` gives to `key`.
    pub(crate) fn new(key: u32, serial: u32, bytes: usize, ledger: &'static Ledger) -> Self {
        let stamp = u64::from(key) << 32 | u64::from(serial);
        let words = (0..bytes.div_ceil(8).max(1) as u64).map(|i| AtomicU64::new(stamp ^ i));
        Self { stamp: AtomicU64::new(stamp), words: words.collect(), ledger }
    }

    /// Reads `work` words, again from the start if there are fewer. True if anything was wrong.
    #[inline]
    pub(crate) fn is_wrong(&self, key: u32, work: u32) -> bool {
        // Relaxed, as all accesses in this file: what orders a value before its readers is the
        // design, and that is what is being tested.
        let stamp = self.stamp.load(Ordering::Relaxed);
        let mut wrong = (stamp >> 32) ^ u64::from(key);
        let mut left = work as usize;
        while left > 0 {
            let now = left.min(self.words.len());
            for (i, word) in self.words[..now].iter().enumerate() {
                wrong |= word.load(Ordering::Relaxed) ^ stamp ^ i as u64;
            }
            left -= now;
        }
        // Freed while the words were read?
        wrong |= self.stamp.load(Ordering::Relaxed) ^ stamp;
        wrong != 0
    }

    /// The serial number of the update that made this value.
    #[cfg(test)]
    pub(crate) fn serial(&self) -> u32 {
        self.stamp.load(Ordering::Relaxed) as u32
    }

    /// What dropping does, apart from giving the memory back.
    fn poison(&self) {
        self.stamp.store(FREED, Ordering::Relaxed);
        self.words[0].store(!FREED, Ordering::Relaxed);
    }

    /// For designs that are wrong on purpose: readers are left with a dropped value, and the
    /// memory stays, so that their being wrong is well defined.
    #[cfg(test)]
    pub(crate) fn pretend_to_free(&self) {
        self.poison();
    }

    /// For designs that are wrong on purpose: half of an update in place.
    #[cfg(test)]
    pub(crate) fn tear(&self, serial: u32) {
        let stamp = self.stamp.load(Ordering::Relaxed) >> 32 << 32 | u64::from(serial);
        for (i, word) in self.words.iter().enumerate().skip(self.words.len() / 2) {
            word.store(stamp ^ i as u64, Ordering::Relaxed);
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.poison();
        self.ledger.freed.add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sound_value_is_right_however_much_of_it_is_read() {
        let value = Value::new(7, 3, 60, Ledger::leak());
        assert_eq!(value.words.len(), 8, "60 bytes are 8 words");
        for work in [0, 1, 7, 8, 9, 100] {
            assert!(!value.is_wrong(7, work), "{work} words");
        }
        assert_eq!(value.serial(), 3);
        assert!(!Value::new(0, 0, 0, Ledger::leak()).is_wrong(0, 1), "one word");
    }

    #[test]
    fn a_wrong_key_a_torn_and_a_freed_value_are_seen() {
        let value = Value::new(7, 3, 64, Ledger::leak());
        assert!(value.is_wrong(8, 0));
        value.tear(4);
        assert!(value.is_wrong(7, 8));
        assert!(!value.is_wrong(7, 4), "the first half was not touched");
        let value = Value::new(7, 3, 64, Ledger::leak());
        value.pretend_to_free();
        assert!(value.is_wrong(7, 0));
        assert!(value.is_wrong(7, 8));
    }

    #[test]
    fn what_is_replaced_waits_until_it_is_dropped() {
        let ledger = Ledger::leak();
        let values = [1, 2].map(|serial| Value::new(1, serial, 8, ledger));
        (0..5).for_each(|_| ledger.replaced.add(1));
        assert_eq!((ledger.freed.sum(), ledger.unreclaimed()), (0, 5));
        drop(values);
        assert_eq!((ledger.freed.sum(), ledger.unreclaimed()), (2, 3));
    }
}
