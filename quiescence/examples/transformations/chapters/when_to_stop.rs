//! When to stop: requests that read a setting and then compute. The lock is a small part of them,
//! and so is what RCU can save.

use super::random::{Random, mix};

/// What a thread does: `operations` requests, each of which reads the setting, and then takes so
/// many steps.
fn run(
    steps: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    setting: impl Fn() -> u64,
) -> u64 {
    let mut random = Random::new(thread, seed);
    let mut sum = 0_u64;
    for _ in 0..operations {
        let request = random.number() ^ setting();
        sum = sum.wrapping_add((0..steps).fold(request, |state, _| mix(state)));
    }
    sum
}

/// The setting.
const SETTING: u64 = 7;

/// A reader-writer lock around the setting.
pub mod before {
    use std::sync::RwLock;

    /// A server of requests.
    #[derive(Debug)]
    pub struct Server {
        steps: usize,
        setting: RwLock<u64>,
    }

    impl Server {
        /// Whose requests take `n` steps each, of about 2 ns.
        pub fn new(n: usize) -> Self {
            Self { steps: n, setting: RwLock::new(super::SETTING) }
        }

        /// Some requests; the sum of their results.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.steps, thread, operations, seed, || *self.setting.read().unwrap())
        }
    }
}

/// The next step, which gains nothing here.
pub mod after {
    use quiescence::Rcu;

    /// A server of requests.
    #[derive(Debug)]
    pub struct Server {
        steps: usize,
        setting: Rcu<u64>,
    }

    impl Server {
        /// Whose requests take `n` steps each, of about 2 ns.
        pub fn new(n: usize) -> Self {
            Self { steps: n, setting: Rcu::new(super::SETTING) }
        }

        /// Some requests; the sum of their results.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.steps, thread, operations, seed, || *self.setting.read())
        }
    }
}
