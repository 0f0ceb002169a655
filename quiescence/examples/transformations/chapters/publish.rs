//! Copy, update, publish: several fields that belong together, and are read together.

use quiescence::Weigh;

use super::random::{Random, mix};

/// One operation of so many is an update.
const UPDATE_EACH: usize = 100;

/// Shares of one whole: their sum stays the same.
#[derive(Clone, Debug, Weigh)]
pub struct Shares {
    parts: Vec<u64>,
    /// The sum of the parts.
    whole: u64,
}

impl Shares {
    fn new(n: usize) -> Self {
        let parts: Vec<u64> = (0..n as u64).map(|place| mix(place) >> 32).collect();
        Self { whole: parts.iter().sum(), parts }
    }

    /// Moves as much as there is, up to `amount`, from one part to another.
    fn shift(&mut self, from: usize, to: usize, amount: u64) {
        let amount = amount.min(self.parts[from]);
        self.parts[from] -= amount;
        self.parts[to] += amount;
    }

    /// The whole, as its parts have it.
    fn sum(&self) -> u64 {
        let sum = self.parts.iter().sum();
        assert_eq!(sum, self.whole, "parts of two versions");
        sum
    }
}

/// Where the shares are.
pub trait Place: From<Shares> + Sync {
    /// The sum of the parts.
    fn sum(&self) -> u64;

    /// Moves something from one part to another.
    fn shift(&self, from: usize, to: usize, amount: u64);
}

/// Parts of a whole.
#[derive(Debug)]
pub struct Table<P> {
    fields: usize,
    shares: P,
}

impl<P: Place> Table<P> {
    /// With `n` parts.
    pub fn new(n: usize) -> Self {
        Self { fields: n, shares: Shares::new(n).into() }
    }

    /// Reads all fields, and now and then changes two; a checksum of the sums.
    pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let mut all = 0_u64;
        for operation in 1..=operations {
            if operation % UPDATE_EACH == 0 {
                let (from, to) = (random.below(self.fields), random.below(self.fields));
                self.shares.shift(from, to, random.number() & 15);
            } else {
                all = all.wrapping_add(self.shares.sum() ^ random.number());
            }
        }
        all
    }
}

/// A lock makes the fields one: a reader excludes the updater, and other readers.
pub mod before {
    use super::Shares;
    use std::sync::Mutex;

    /// Under a lock.
    pub type Table = super::Table<Mutex<Shares>>;

    impl super::Place for Mutex<Shares> {
        fn sum(&self) -> u64 {
            self.lock().unwrap().sum()
        }

        fn shift(&self, from: usize, to: usize, amount: u64) {
            self.lock().unwrap().shift(from, to, amount);
        }
    }
}

/// An updater changes a copy, and publishes it as a whole, by one store of a pointer.
pub mod after {
    use super::Shares;
    use quiescence::Rcu;

    /// In a cell.
    pub type Table = super::Table<Rcu<Shares>>;

    impl super::Place for Rcu<Shares> {
        fn sum(&self) -> u64 {
            self.read().sum()
        }

        fn shift(&self, from: usize, to: usize, amount: u64) {
            self.update(|old| {
                let mut new = old.clone();
                new.shift(from, to, amount);
                new
            });
        }
    }
}
