//! RCU with a deleted flag: sessions are looked up without a lock, and yet no thread adds to one
//! that is closed.

use super::random::Random;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// One operation of so many closes a session, and opens another one in its place.
const CLOSE_EACH: usize = 100;

/// Sessions that are open, by number, each with its sum.
pub trait Sessions: Sync {
    /// `n` of them.
    fn new(n: usize) -> Self;

    /// Adds to the session that has this number now.
    fn add(&self, place: usize, amount: u64);

    /// Closes a session and returns its sum; another one gets its number.
    fn close(&self, place: usize) -> u64;

    /// The sum of all.
    fn sum(&self) -> u64;
}

/// Sessions, and what is left of those that are closed.
#[derive(Debug)]
pub struct Table<S> {
    count: usize,
    sessions: S,
    /// The sum of the sessions that are closed.
    closed: AtomicU64,
}

impl<S: Sessions> Table<S> {
    /// With `n` sessions.
    pub fn new(n: usize) -> Self {
        Self { count: n, sessions: S::new(n), closed: AtomicU64::new(0) }
    }

    /// Additions to sessions, some of which are closed; the sum of what it has added.
    pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let mut sum = 0;
        for operation in 1..=operations {
            let place = random.below(self.count);
            if operation % CLOSE_EACH == 0 {
                self.closed.fetch_add(self.sessions.close(place), Relaxed);
            } else {
                let amount = random.number() & 15;
                self.sessions.add(place, amount);
                sum += amount;
            }
        }
        sum
    }

    /// The sum of all sessions, those that are closed among them. Not beside additions.
    pub fn total(&self) -> u64 {
        self.sessions.sum() + self.closed.load(Relaxed)
    }
}

/// A reader-writer lock of the table is held as long as a session is in use, so that none is closed
/// meanwhile.
pub mod before {
    use std::sync::{Mutex, RwLock};

    /// Under that lock.
    pub type Table = super::Table<RwLock<Vec<Mutex<u64>>>>;

    impl super::Sessions for RwLock<Vec<Mutex<u64>>> {
        fn new(n: usize) -> Self {
            Self::new((0..n).map(|_| Mutex::new(0)).collect())
        }

        fn add(&self, place: usize, amount: u64) {
            let sessions = self.read().unwrap();
            *sessions[place].lock().unwrap() += amount;
        }

        fn close(&self, place: usize) -> u64 {
            let mut sessions = self.write().unwrap();
            std::mem::take(&mut sessions[place]).into_inner().unwrap()
        }

        fn sum(&self) -> u64 {
            self.read().unwrap().iter().map(|session| *session.lock().unwrap()).sum()
        }
    }
}

/// A look-up takes no lock. What it finds may be closed before it is locked: the flag says so.
pub mod after {
    use quiescence::{Rcu, Weigh};
    use std::sync::Mutex;

    /// A session.
    #[derive(Debug, Default, Weigh)]
    pub struct Session {
        state: Mutex<State>,
    }

    #[derive(Debug, Default, Weigh)]
    struct State {
        sum: u64,
        /// No thread adds to it any more.
        deleted: bool,
    }

    /// With a cell each.
    pub type Table = super::Table<Box<[Rcu<Session>]>>;

    impl super::Sessions for Box<[Rcu<Session>]> {
        fn new(n: usize) -> Self {
            (0..n).map(|_| Rcu::default()).collect()
        }

        fn add(&self, place: usize, amount: u64) {
            loop {
                let session = self[place].read();
                let mut state = session.state.lock().unwrap();
                if !state.deleted {
                    state.sum += amount;
                    return;
                }
                // It was replaced before it was marked: the next look-up finds another one.
            }
        }

        fn close(&self, place: usize) -> u64 {
            let old = self[place].swap(Session::default());
            let mut state = old.state.lock().unwrap();
            state.deleted = true;
            // `old` is dropped at the end: it is freed when no look-up has it any more.
            state.sum
        }

        fn sum(&self) -> u64 {
            self.iter().map(|session| session.read().state.lock().unwrap().sum).sum()
        }
    }
}
