//! Code locking to data locking: a table of counters, whose one lock becomes a lock of each bucket.

use super::random::Random;

/// Counters in a bucket, on average.
const IN_BUCKET: usize = 4;

/// What a thread does: it adds to `operations` counters, of `counters`.
fn run(
    counters: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    add: impl Fn(u64, u64),
) -> u64 {
    let mut random = Random::new(thread, seed);
    let mut sum = 0;
    for _ in 0..operations {
        let key = random.below(counters) as u64;
        let amount = random.number() & 15;
        add(key, amount);
        sum += amount;
    }
    sum
}

/// The counter of a key in its bucket.
fn counter(bucket: &mut Vec<(u64, u64)>, key: u64) -> &mut u64 {
    let place = bucket.iter().position(|entry| entry.0 == key).unwrap_or_else(|| {
        bucket.push((key, 0));
        bucket.len() - 1
    });
    &mut bucket[place].1
}

/// One lock, which each thread holds that runs this code.
pub mod before {
    use std::sync::Mutex;

    /// Counters by key.
    #[derive(Debug)]
    pub struct Table {
        counters: usize,
        buckets: Mutex<Vec<Vec<(u64, u64)>>>,
    }

    impl Table {
        /// With `n` counters.
        pub fn new(n: usize) -> Self {
            let buckets = Mutex::new(vec![Vec::new(); n.div_ceil(super::IN_BUCKET)]);
            Self { counters: n, buckets }
        }

        /// Adds to the counter of a key.
        pub fn add(&self, key: u64, amount: u64) {
            let mut buckets = self.buckets.lock().unwrap();
            let place = key as usize % buckets.len();
            *super::counter(&mut buckets[place], key) += amount;
        }

        /// Adds to some counters; the sum of what it has added.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.counters, thread, operations, seed, |key, amount| self.add(key, amount))
        }

        /// The sum of all counters.
        pub fn total(&self) -> u64 {
            self.buckets.lock().unwrap().iter().flatten().map(|entry| entry.1).sum()
        }
    }
}

/// A lock of each bucket: who uses one bucket does not wait for the user of another.
pub mod after {
    use std::sync::Mutex;

    /// In a cache line of its own, so that a lock does not take the line of another one.
    #[derive(Debug, Default)]
    #[repr(align(64))]
    struct Bucket(Mutex<Vec<(u64, u64)>>);

    /// Counters by key.
    #[derive(Debug)]
    pub struct Table {
        counters: usize,
        buckets: Box<[Bucket]>,
    }

    impl Table {
        /// With `n` counters.
        pub fn new(n: usize) -> Self {
            let buckets = (0..n.div_ceil(super::IN_BUCKET)).map(|_| Bucket::default()).collect();
            Self { counters: n, buckets }
        }

        /// Adds to the counter of a key.
        pub fn add(&self, key: u64, amount: u64) {
            let bucket = &self.buckets[key as usize % self.buckets.len()];
            *super::counter(&mut bucket.0.lock().unwrap(), key) += amount;
        }

        /// Adds to some counters; the sum of what it has added.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.counters, thread, operations, seed, |key, amount| self.add(key, amount))
        }

        /// The sum of all counters.
        pub fn total(&self) -> u64 {
            let sum = |bucket: &Bucket| bucket.0.lock().unwrap().iter().map(|e| e.1).sum::<u64>();
            self.buckets.iter().map(sum).sum()
        }
    }
}
