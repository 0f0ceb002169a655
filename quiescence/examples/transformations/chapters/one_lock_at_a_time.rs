//! One lock at a time: an element moves between two containers, and each look-up finds it in at
//! least one of them (a puzzle of McKenney's, 2005).

use super::random::{Random, mix};

/// One operation of so many is a move.
const MOVE_EACH: usize = 100;

/// Elements by key, in two containers.
pub trait Containers: Sync {
    /// How many elements there are: of as many threads each moves one, and others only look up.
    fn count(&self) -> usize;

    /// The value of a key, in whichever container it is.
    fn find(&self, key: u64) -> Option<u64>;

    /// Moves an element from the first container to the second, which has none of its key.
    fn move_on(&self, key: u64);

    /// Moves it back.
    fn move_back(&self, key: u64);

    /// Look-ups of all keys, of which the thread's own is moved there and back now and then; the
    /// sum of what was found.
    fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
        let mut random = Random::new(thread, seed);
        let (mut sum, mut is_second) = (0_u64, false);
        let own = thread as u64;
        for operation in 1..=operations {
            if operation % MOVE_EACH != 0 || thread >= self.count() {
                let key = random.below(self.count()) as u64;
                sum = sum.wrapping_add(self.find(key).expect("it is in one of them"));
            } else {
                if is_second {
                    self.move_back(own)
                } else {
                    self.move_on(own)
                }
                is_second = !is_second;
            }
        }
        if is_second {
            self.move_back(own);
        }
        sum
    }
}

fn elements(n: usize) -> impl Iterator<Item = (u64, u64)> {
    (0..n as u64).map(|key| (key, mix(key)))
}

/// Both containers are locked at once, by look-ups too.
pub mod before {
    use super::super::lock_pair::lock_pair;
    use super::Containers;
    use std::collections::HashMap;
    use std::sync::Mutex;

    /// Elements by key.
    #[derive(Debug)]
    pub struct Tickets(usize, [Mutex<HashMap<u64, u64>>; 2]);

    impl Tickets {
        /// `n` of them, all in the first container.
        pub fn new(n: usize) -> Self {
            Self(n, [super::elements(n).collect(), HashMap::new()].map(Mutex::new))
        }

        fn carry(&self, key: u64, from: usize) {
            let (mut from, mut to) = lock_pair(&self.1[from], &self.1[1 - from]).unwrap();
            to.extend(from.remove_entry(&key));
        }
    }

    impl Containers for Tickets {
        fn count(&self) -> usize {
            self.0
        }

        fn find(&self, key: u64) -> Option<u64> {
            let (first, second) = lock_pair(&self.1[0], &self.1[1]).unwrap();
            first.get(&key).or_else(|| second.get(&key)).copied()
        }

        fn move_on(&self, key: u64) {
            self.carry(key, 0);
        }

        fn move_back(&self, key: u64) {
            self.carry(key, 1);
        }
    }
}

/// A look-up takes no lock, and a move one at a time: that of the container it changes.
pub mod after {
    use super::Containers;
    use quiescence::collections::HashMap;

    /// Elements by key. Each update of a map locks the key's bucket, and nothing else.
    #[derive(Debug)]
    pub struct Tickets {
        count: usize,
        first: HashMap<u64, u64>,
        second: HashMap<u64, u64>,
    }

    impl Tickets {
        /// `n` of them, all in the first container.
        pub fn new(n: usize) -> Self {
            Self { count: n, first: super::elements(n).collect(), second: HashMap::new() }
        }
    }

    impl Containers for Tickets {
        fn count(&self) -> usize {
            self.count
        }

        /// In the order of the moves: an element that has left the first container is in the
        /// second.
        fn find(&self, key: u64) -> Option<u64> {
            let section = quiescence::read();
            let found = self.first.get(&key, &section).or_else(|| self.second.get(&key, &section));
            found.copied()
        }

        /// Updates in the order of the reads: in before out.
        fn move_on(&self, key: u64) {
            let value = *self.first.read().get(&key).expect("it is there");
            self.second.insert(key, value);
            self.first.remove(&key);
        }

        /// Against the order of the reads: a look-up that has missed the element in the first
        /// container must not miss it in the second.
        fn move_back(&self, key: u64) {
            let value = *self.second.read().get(&key).expect("it is there");
            self.first.insert(key, value);
            quiescence::synchronize();
            self.second.remove(&key);
        }
    }
}
