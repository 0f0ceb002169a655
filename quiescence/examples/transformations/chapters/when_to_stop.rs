//! When to stop: requests that read a setting and then compute. The lock is a small part of them,
//! and so is what RCU can save.

use super::random::{Random, mix};

/// What each request reads.
pub trait Setting: From<u64> + Sync {
    /// The setting.
    fn get(&self) -> u64;
}

/// A server of requests.
#[derive(Debug)]
pub struct Server<S> {
    steps: usize,
    setting: S,
}

impl<S: Setting> Server<S> {
    /// Whose requests take `n` steps each, of about 2 ns.
    pub fn new(n: usize) -> Self {
        Self { steps: n, setting: S::from(7) }
    }

    /// Some requests, each of which reads the setting, and then takes its steps; the sum of their
    /// results.
    pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let mut sum = 0_u64;
        for _ in 0..operations {
            let request = random.number() ^ self.setting.get();
            sum = sum.wrapping_add((0..self.steps).fold(request, |state, _| mix(state)));
        }
        sum
    }
}

/// A reader-writer lock around the setting.
pub mod before {
    use std::sync::RwLock;

    /// With a lock.
    pub type Server = super::Server<RwLock<u64>>;

    impl super::Setting for RwLock<u64> {
        fn get(&self) -> u64 {
            *self.read().unwrap()
        }
    }
}

/// The next step, which gains nothing here.
pub mod after {
    use quiescence::Rcu;

    /// With RCU.
    pub type Server = super::Server<Rcu<u64>>;

    impl super::Setting for Rcu<u64> {
        fn get(&self) -> u64 {
            *self.read()
        }
    }
}
