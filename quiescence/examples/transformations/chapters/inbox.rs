//! Owner reads, others update: an inbox that its owner checks often, and others seldom fill.

use super::random::Random;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One operation of so many raises events, in any of the inboxes; the others are checks of the
/// thread's own.
const RAISE_EACH: usize = 100;

/// What others leave for an owner.
pub trait Inbox: Default + Sync {
    /// Adds events.
    fn raise(&self, events: u64);

    /// Takes all that there are.
    fn take(&self) -> u64;
}

/// On lines of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Apart<I>(I);

/// An inbox for each owner.
#[derive(Debug)]
pub struct Inboxes<I> {
    inboxes: Box<[Apart<I>]>,
    taken: AtomicU64,
}

impl<I: Inbox> Inboxes<I> {
    /// For `n` owners: of more threads some share one.
    pub fn new(n: usize) -> Self {
        Self { inboxes: (0..n).map(|_| Apart::default()).collect(), taken: AtomicU64::new(0) }
    }

    /// Checks of the thread's own inbox, and events raised in all of them; the sum of those.
    pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let count = self.inboxes.len();
        let Apart(own) = &self.inboxes[thread % count];
        let (mut raised, mut taken) = (0, 0);
        for operation in 1..=operations {
            if operation % RAISE_EACH == 0 {
                let events = random.number() & 15;
                self.inboxes[random.below(count)].0.raise(events);
                raised += events;
            } else {
                taken += own.take();
            }
        }
        self.taken.fetch_add(taken, Relaxed);
        raised
    }

    /// The sum of all that was taken, or is in an inbox still.
    pub fn total(&self) -> u64 {
        self.taken.load(Relaxed) + self.inboxes.iter().map(|inbox| inbox.0.take()).sum::<u64>()
    }
}

/// The owner checks under the lock that the others take to update.
pub mod before {
    use std::sync::Mutex;

    /// With a lock each.
    pub type Inboxes = super::Inboxes<Mutex<u64>>;

    impl super::Inbox for Mutex<u64> {
        fn raise(&self, events: u64) {
            *self.lock().unwrap() += events;
        }

        fn take(&self) -> u64 {
            std::mem::take(&mut *self.lock().unwrap())
        }
    }
}

/// The others update by one atomic operation; the owner reads a line that stays in its cache.
pub mod after {
    use std::sync::atomic::AtomicU64;
    use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

    /// With a word each.
    pub type Inboxes = super::Inboxes<AtomicU64>;

    impl super::Inbox for AtomicU64 {
        fn raise(&self, events: u64) {
            // Release: pairs with the Acquire in `take`, whose owner sees what was written before.
            self.fetch_add(events, Release);
        }

        fn take(&self) -> u64 {
            // Relaxed: nothing is read if there are no events. Acquire: as above.
            if self.load(Relaxed) == 0 { 0 } else { self.swap(0, Acquire) }
        }
    }
}
