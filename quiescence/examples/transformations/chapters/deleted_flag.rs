//! RCU with a deleted flag: sessions are looked up without a lock, and yet no thread adds to one
//! that is closed.

use super::random::Random;

/// One operation of so many closes a session, and opens another one in its place.
const CLOSE_EACH: usize = 100;

/// What a thread does: `operations` additions to sessions, some of which it closes.
fn run(
    sessions: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    add: impl Fn(usize, u64),
    close: impl Fn(usize),
) -> u64 {
    let mut random = Random::new(thread, seed);
    let mut sum = 0;
    for operation in 1..=operations {
        let place = random.below(sessions);
        if operation % CLOSE_EACH == 0 {
            close(place);
        } else {
            let amount = random.number() & 15;
            add(place, amount);
            sum += amount;
        }
    }
    sum
}

/// A reader-writer lock of the table is held as long as a session is in use, so that none is closed
/// meanwhile.
pub mod before {
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::sync::{Mutex, RwLock};

    /// Sessions by number, each with its sum.
    #[derive(Debug)]
    pub struct Table {
        count: usize,
        sessions: RwLock<Vec<Mutex<u64>>>,
        /// The sum of the sessions that are closed.
        closed: AtomicU64,
    }

    impl Table {
        /// With `n` sessions.
        pub fn new(n: usize) -> Self {
            let sessions = RwLock::new((0..n).map(|_| Mutex::new(0)).collect());
            Self { count: n, sessions, closed: AtomicU64::new(0) }
        }

        /// Adds to the session that has this number now.
        pub fn add(&self, place: usize, amount: u64) {
            let sessions = self.sessions.read().unwrap();
            *sessions[place].lock().unwrap() += amount;
        }

        /// Closes a session; another one gets its number.
        pub fn close(&self, place: usize) {
            let mut sessions = self.sessions.write().unwrap();
            let old = std::mem::take(&mut sessions[place]).into_inner().unwrap();
            self.closed.fetch_add(old, Relaxed);
        }

        /// Additions to sessions; the sum of what it has added.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let (add, close) = (|place, amount| self.add(place, amount), |place| self.close(place));
            super::run(self.count, thread, operations, seed, add, close)
        }

        /// The sum of all sessions, those that are closed among them.
        pub fn total(&self) -> u64 {
            let sessions = self.sessions.read().unwrap();
            let open: u64 = sessions.iter().map(|session| *session.lock().unwrap()).sum();
            open + self.closed.load(Relaxed)
        }
    }
}

/// A look-up takes no lock. What it finds may be closed before it is locked: the flag says so.
pub mod after {
    use quiescence::{Rcu, Weigh};
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

    #[derive(Debug, Default, Weigh)]
    struct Session {
        state: Mutex<State>,
    }

    #[derive(Debug, Default, Weigh)]
    struct State {
        sum: u64,
        /// No thread adds to it any more.
        deleted: bool,
    }

    /// Sessions by number, each with its sum.
    #[derive(Debug)]
    pub struct Table {
        sessions: Box<[Rcu<Session>]>,
        /// The sum of the sessions that are closed.
        closed: AtomicU64,
    }

    impl Table {
        /// With `n` sessions.
        pub fn new(n: usize) -> Self {
            let sessions = (0..n).map(|_| Rcu::new(Session::default())).collect();
            Self { sessions, closed: AtomicU64::new(0) }
        }

        /// Adds to the session that has this number now.
        pub fn add(&self, place: usize, amount: u64) {
            loop {
                let session = self.sessions[place].read();
                let mut state = session.state.lock().unwrap();
                if !state.deleted {
                    state.sum += amount;
                    return;
                }
                // It was replaced before it was marked: the next look-up finds another one.
            }
        }

        /// Closes a session; another one gets its number.
        pub fn close(&self, place: usize) {
            let old = self.sessions[place].swap(Session::default());
            let mut state = old.state.lock().unwrap();
            state.deleted = true;
            self.closed.fetch_add(state.sum, Relaxed);
            drop(state);
            // `old` is dropped here: it is freed when no look-up has it any more.
        }

        /// Additions to sessions; the sum of what it has added.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let (add, close) = (|place, amount| self.add(place, amount), |place| self.close(place));
            super::run(self.sessions.len(), thread, operations, seed, add, close)
        }

        /// The sum of all sessions, those that are closed among them.
        pub fn total(&self) -> u64 {
            let sum = |session: &Rcu<Session>| session.read().state.lock().unwrap().sum;
            self.sessions.iter().map(sum).sum::<u64>() + self.closed.load(Relaxed)
        }
    }
}
