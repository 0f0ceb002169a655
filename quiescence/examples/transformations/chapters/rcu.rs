//! Reader-writer lock to RCU: a table of routes that is read all the time and replaced now and
//! then.

use super::random::Random;

/// One operation of so many is an update.
const UPDATE_EACH: usize = 1_000;

/// A route: where it leads to never changes, what it costs does.
#[derive(Clone, Debug)]
struct Route {
    port: u64,
    cost: u64,
}

fn routes(n: usize) -> Vec<Route> {
    (0..n as u64).map(|place| Route { port: super::random::mix(place), cost: 0 }).collect()
}

/// What a thread does: `operations` look-ups of routes, and now and then another cost of one.
fn run(
    routes: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    port: impl Fn(usize) -> u64,
    set_cost: impl Fn(usize, u64),
) -> u64 {
    let mut random = Random::new(thread, seed);
    let mut sum = 0_u64;
    for operation in 1..=operations {
        let place = random.below(routes);
        if operation % UPDATE_EACH == 0 {
            set_cost(place, operation as u64);
        } else {
            sum = sum.wrapping_add(port(place));
        }
    }
    sum
}

/// A reader-writer lock: each reader writes to the lock, whose cache line the readers' CPUs take
/// from each other.
pub mod before {
    use super::Route;
    use std::sync::RwLock;

    /// Routes by number.
    #[derive(Debug)]
    pub struct Table {
        count: usize,
        routes: RwLock<Vec<Route>>,
    }

    impl Table {
        /// With `n` routes.
        pub fn new(n: usize) -> Self {
            Self { count: n, routes: RwLock::new(super::routes(n)) }
        }

        /// Where a route leads to.
        pub fn port(&self, place: usize) -> u64 {
            self.routes.read().unwrap()[place].port
        }

        /// Says what a route costs.
        pub fn set_cost(&self, place: usize, cost: u64) {
            self.routes.write().unwrap()[place].cost = cost;
        }

        /// Look-ups and updates; the sum of the ports.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let (port, set_cost) = (|place| self.port(place), |place, to| self.set_cost(place, to));
            super::run(self.count, thread, operations, seed, port, set_cost)
        }
    }
}

/// RCU: a reader writes to memory of its own thread only, and an updater copies.
pub mod after {
    use super::Route;
    use quiescence::{Rcu, Weigh};

    impl Weigh for Route {
        const OWNS: bool = false;
    }

    /// Routes by number.
    #[derive(Debug)]
    pub struct Table {
        count: usize,
        routes: Rcu<Vec<Route>>,
    }

    impl Table {
        /// With `n` routes.
        pub fn new(n: usize) -> Self {
            Self { count: n, routes: Rcu::new(super::routes(n)) }
        }

        /// Where a route leads to.
        pub fn port(&self, place: usize) -> u64 {
            self.routes.read()[place].port
        }

        /// Says what a route costs.
        pub fn set_cost(&self, place: usize, cost: u64) {
            self.routes.update(|old| {
                let mut new = old.clone();
                new[place].cost = cost;
                new
            });
        }

        /// Look-ups and updates; the sum of the ports.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let (port, set_cost) = (|place| self.port(place), |place, to| self.set_cost(place, to));
            super::run(self.count, thread, operations, seed, port, set_cost)
        }
    }
}
