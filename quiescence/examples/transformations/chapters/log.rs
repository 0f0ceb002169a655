//! Ordered update with ordered read: a log that is read while it grows.

use super::random::{Random, mix};

/// One operation of so many appends an entry; the others read one.
pub const APPEND_EACH: usize = 100;

/// A read picks one of this many last entries.
pub const LAST: usize = 64;

/// Entries, of which there are [`LAST`] from the beginning.
pub trait Entries: Sync {
    /// Appends the entry of its place, unless the log is full.
    fn append(&self);

    /// The entry so many before the last, and its place.
    fn get(&self, before_last: usize) -> (usize, u64);

    /// Reads, and now and then an entry more; the sum of the places, counted from the last.
    fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let mut sum = 0;
        for operation in 1..=operations {
            if operation % APPEND_EACH == 0 {
                self.append();
            } else {
                let before_last = random.below(LAST);
                let (place, entry) = self.get(before_last);
                assert_eq!(entry, mix(place as u64 + 1), "it was written before it was counted");
                sum += before_last as u64;
            }
        }
        sum
    }
}

/// Readers lock the log, to have entries and length of one moment.
pub mod before {
    use super::{Entries, LAST, mix};
    use std::sync::Mutex;

    /// A log.
    #[derive(Debug)]
    pub struct Log(Mutex<Vec<u64>>, usize);

    impl Log {
        /// With room for `n` entries.
        pub fn new(n: usize) -> Self {
            let log = Self(Mutex::new(Vec::with_capacity(n)), n);
            (0..LAST).for_each(|_| log.append());
            log
        }
    }

    impl Entries for Log {
        fn append(&self) {
            let mut entries = self.0.lock().unwrap();
            let len = entries.len();
            if len < self.1 {
                entries.push(mix(len as u64 + 1));
            }
        }

        fn get(&self, before_last: usize) -> (usize, u64) {
            let entries = self.0.lock().unwrap();
            let place = entries.len() - 1 - before_last;
            (place, entries[place])
        }
    }
}

/// The updater writes the entry and then the length; readers read the length and then the entry.
pub mod after {
    use super::{Entries, LAST, mix};
    use std::sync::Mutex;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};
    use std::sync::atomic::{AtomicU64, AtomicUsize};

    /// A log.
    #[derive(Debug)]
    pub struct Log {
        entries: Box<[AtomicU64]>,
        len: AtomicUsize,
        appending: Mutex<()>,
    }

    impl Log {
        /// With room for `n` entries.
        pub fn new(n: usize) -> Self {
            let entries = (0..n).map(|_| AtomicU64::new(0)).collect();
            let log = Self { entries, len: AtomicUsize::new(0), appending: Mutex::new(()) };
            (0..LAST).for_each(|_| log.append());
            log
        }
    }

    impl Entries for Log {
        fn append(&self) {
            let _appending = self.appending.lock().unwrap();
            let len = self.len.load(Relaxed);
            if let Some(entry) = self.entries.get(len) {
                entry.store(mix(len as u64 + 1), Relaxed);
                // Release: pairs with the Acquire in `get`; who reads the length sees the entry.
                self.len.store(len + 1, Release);
            }
        }

        fn get(&self, before_last: usize) -> (usize, u64) {
            // Acquire: pairs with the Release in `append`.
            let place = self.len.load(Acquire) - 1 - before_last;
            (place, self.entries[place].load(Relaxed))
        }
    }
}
