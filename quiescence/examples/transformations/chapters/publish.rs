//! Copy, update, publish: several fields that belong together, and are read together.

use super::random::{Random, mix};

/// One operation of so many is an update.
const UPDATE_EACH: usize = 100;

/// Shares of one whole: their sum stays the same.
#[derive(Clone, Debug)]
struct Shares {
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

/// What a thread does: it reads all fields `operations` times, and now and then changes two.
fn run(
    fields: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    sum: impl Fn() -> u64,
    shift: impl Fn(usize, usize, u64),
) -> u64 {
    let mut random = Random::new(thread, seed);
    let mut all = 0_u64;
    for operation in 1..=operations {
        if operation % UPDATE_EACH == 0 {
            shift(random.below(fields), random.below(fields), random.number() & 15);
        } else {
            all = all.wrapping_add(sum() ^ random.number());
        }
    }
    all
}

/// A lock makes the fields one: a reader excludes the updater, and other readers.
pub mod before {
    use super::Shares;
    use std::sync::Mutex;

    /// Parts of a whole.
    #[derive(Debug)]
    pub struct Table {
        fields: usize,
        shares: Mutex<Shares>,
    }

    impl Table {
        /// With `n` parts.
        pub fn new(n: usize) -> Self {
            Self { fields: n, shares: Mutex::new(Shares::new(n)) }
        }

        /// The sum of the parts.
        pub fn sum(&self) -> u64 {
            self.shares.lock().unwrap().sum()
        }

        /// Moves something from one part to another.
        pub fn shift(&self, from: usize, to: usize, amount: u64) {
            self.shares.lock().unwrap().shift(from, to, amount);
        }

        /// Reads and updates; a checksum of the sums.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let shift = |from, to, amount| self.shift(from, to, amount);
            super::run(self.fields, thread, operations, seed, || self.sum(), shift)
        }
    }
}

/// An updater changes a copy, and publishes it as a whole, by one store of a pointer.
pub mod after {
    use super::Shares;
    use quiescence::{Rcu, Weigh};

    impl Weigh for Shares {
        fn owned(&self) -> usize {
            self.parts.owned()
        }
    }

    /// Parts of a whole.
    #[derive(Debug)]
    pub struct Table {
        fields: usize,
        shares: Rcu<Shares>,
    }

    impl Table {
        /// With `n` parts.
        pub fn new(n: usize) -> Self {
            Self { fields: n, shares: Rcu::new(Shares::new(n)) }
        }

        /// The sum of the parts.
        pub fn sum(&self) -> u64 {
            self.shares.read().sum()
        }

        /// Moves something from one part to another.
        pub fn shift(&self, from: usize, to: usize, amount: u64) {
            self.shares.update(|old| {
                let mut new = old.clone();
                new.shift(from, to, amount);
                new
            });
        }

        /// Reads and updates; a checksum of the sums.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let shift = |from, to, amount| self.shift(from, to, amount);
            super::run(self.fields, thread, operations, seed, || self.sum(), shift)
        }
    }
}
