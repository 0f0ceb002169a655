//! The ladder from one big lock to RCU: one program in five stages, each a step of the chapters.
//!
//! A table of routes is looked up all the time, and traffic is added to a route now and then, which
//! takes a while. [`OneLock`] to [`Buckets`]: code locking to data locking; to [`Records`]:
//! hierarchical locking; to [`Shared`]: reader-writer locks; to [`Copied`]: RCU.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, RwLock};

use quiescence::Weigh;

use super::random::{Random, mix};

/// One operation of so many adds traffic.
const ADD_EACH: usize = 16;

/// How long an addition takes, in steps of about 2 ns.
const STEPS: u64 = 50;

/// A route: where it leads to never changes, what has gone there does.
#[derive(Clone, Copy, Debug, Weigh)]
pub struct Route {
    port: u64,
    traffic: u64,
}

impl Route {
    fn new(key: u64) -> Self {
        Self { port: mix(key), traffic: 0 }
    }

    fn add(&mut self, amount: u64) {
        let account = (0..STEPS).fold(amount, |state, step| mix(state ^ step));
        self.traffic += amount;
        std::hint::black_box(account);
    }
}

/// A stage: the same table, and another lock.
pub trait Stage: Sync + Sized {
    /// What it is, for people.
    const NAME: &'static str;

    /// With routes for the keys below `n`.
    fn new(n: usize) -> Self;

    /// How many routes there are.
    fn count(&self) -> usize;

    /// Where a route leads to.
    fn port(&self, key: u64) -> u64;

    /// Adds traffic to a route.
    fn add(&self, key: u64, amount: u64);

    /// The traffic of a route.
    fn traffic(&self, key: u64) -> u64;

    /// Look-ups and additions; the sum of what was found and added.
    fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let (count, mut random) = (self.count(), Random::new(thread, seed));
        let mut sum = 0_u64;
        for operation in 1..=operations {
            let key = random.below(count) as u64;
            if operation % ADD_EACH == 0 {
                let amount = random.number() & 15;
                self.add(key, amount);
                sum = sum.wrapping_add(amount);
            } else {
                sum = sum.wrapping_add(self.port(key));
            }
        }
        sum
    }

    /// The traffic of all routes.
    fn total(&self) -> u64 {
        (0..self.count() as u64).map(|key| self.traffic(key)).sum()
    }
}

fn routes(n: usize) -> impl Iterator<Item = (u64, Route)> {
    (0..n as u64).map(|key| (key, Route::new(key)))
}

/// A part of a table, whose lock does not share a cache line with another one.
#[derive(Debug, Default)]
#[repr(align(64))]
struct Bucket<L>(L);

/// A table in so many parts.
#[derive(Debug)]
pub struct Parts<L, const BUCKETS: usize = 64> {
    parts: Box<[Bucket<L>]>,
    len: usize,
}

impl<L: Default, const BUCKETS: usize> Parts<L, BUCKETS> {
    /// With these entries, each put into its part by `put`.
    fn filled<T>(n: usize, to: fn(Route) -> T, put: fn(&mut L) -> &mut HashMap<u64, T>) -> Self {
        let mut parts: Box<[Bucket<L>]> = (0..BUCKETS).map(|_| Bucket::default()).collect();
        for (key, route) in routes(n) {
            put(&mut parts[key as usize % BUCKETS].0).insert(key, to(route));
        }
        Self { parts, len: n }
    }

    fn of(&self, key: u64) -> &L {
        &self.parts[key as usize % BUCKETS].0
    }
}

/// 1. Code locking: one lock for all who run the code.
pub type OneLock = Parts<Mutex<HashMap<u64, Route>>, 1>;

/// 2. Data locking: a lock for each bucket.
pub type Buckets = Parts<Mutex<HashMap<u64, Route>>>;

impl<const BUCKETS: usize> Stage for Parts<Mutex<HashMap<u64, Route>>, BUCKETS> {
    const NAME: &'static str = if BUCKETS == 1 { "one lock" } else { "data locking" };

    fn new(n: usize) -> Self {
        Self::filled(n, |route| route, |part| part.get_mut().unwrap())
    }

    fn count(&self) -> usize {
        self.len
    }

    fn port(&self, key: u64) -> u64 {
        self.of(key).lock().unwrap()[&key].port
    }

    fn add(&self, key: u64, amount: u64) {
        self.of(key).lock().unwrap().get_mut(&key).unwrap().add(amount);
    }

    fn traffic(&self, key: u64) -> u64 {
        self.of(key).lock().unwrap()[&key].traffic
    }
}

/// A route with a lock of its own, below that of its bucket.
#[derive(Debug)]
pub struct Record {
    port: u64,
    route: Mutex<Route>,
}

impl Record {
    fn new(route: Route) -> Arc<Self> {
        Arc::new(Self { port: route.port, route: Mutex::new(route) })
    }

    fn add(&self, amount: u64) {
        self.route.lock().unwrap().add(amount);
    }
}

/// Implements the stages whose records have locks: how a bucket is locked to look into it.
macro_rules! with_records {
    ($stage:ty, $name:literal, $lock:ident) => {
        impl Stage for $stage {
            const NAME: &'static str = $name;

            fn new(n: usize) -> Self {
                Self::filled(n, Record::new, |part| part.get_mut().unwrap())
            }

            fn count(&self) -> usize {
                self.len
            }

            fn port(&self, key: u64) -> u64 {
                self.of(key).$lock().unwrap()[&key].port
            }

            fn add(&self, key: u64, amount: u64) {
                // The bucket's lock is let go when the record has been found.
                let record = Arc::clone(&self.of(key).$lock().unwrap()[&key]);
                record.add(amount);
            }

            fn traffic(&self, key: u64) -> u64 {
                self.of(key).$lock().unwrap()[&key].route.lock().unwrap().traffic
            }
        }
    };
}

/// 3. Hierarchical locking: a bucket's lock to find a record, and the record's to change it.
pub type Records = Parts<Mutex<HashMap<u64, Arc<Record>>>>;
with_records!(Records, "hierarchical locking", lock);

/// 4. Reader-writer locks: threads that look into a bucket share it.
pub type Shared = Parts<RwLock<HashMap<u64, Arc<Record>>>>;
with_records!(Shared, "reader-writer locks", read);

/// 5. RCU: a look-up takes no lock, and a route is replaced by a changed copy.
#[derive(Debug)]
pub struct Copied(quiescence::collections::HashMap<u64, Route>);

impl Stage for Copied {
    const NAME: &'static str = "RCU";

    fn new(n: usize) -> Self {
        Self(routes(n).collect())
    }

    fn count(&self) -> usize {
        self.0.len()
    }

    fn port(&self, key: u64) -> u64 {
        self.0.read().get(&key).unwrap().port
    }

    fn add(&self, key: u64, amount: u64) {
        self.0.update(&key, |old| {
            let mut new = *old;
            new.add(amount);
            new
        });
    }

    fn traffic(&self, key: u64) -> u64 {
        self.0.read().get(&key).unwrap().traffic
    }
}
