//! Locking to ownership: a record that all threads update gets one owner at a time, to whom the
//! others ship their functions.

use super::random::Random;

/// Words of the record that an operation changes.
const TOUCHED: usize = 16;

/// What one operation does to the record: it adds to the first word, and changes some others.
fn apply(record: &mut [u64], place: usize, amount: u64) {
    let (sum, words) = record.split_first_mut().expect("there is one");
    for step in 0..TOUCHED {
        let word = &mut words[(place + step * 8) % words.len()];
        *word = word.rotate_left(1) ^ amount;
    }
    *sum += amount;
}

/// What a thread does: it asks for `operations` changes, of a record of so many words.
fn run(
    words: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    mut change: impl FnMut(usize, u64),
) -> u64 {
    let mut random = Random::new(thread, seed);
    let mut sum = 0;
    for _ in 0..operations {
        let (place, amount) = (random.below(words), random.number() & 15);
        change(place, amount);
        sum += amount;
    }
    sum
}

/// A lock: the record moves to the CPU of each thread that changes it, and threads wait.
pub mod before {
    use std::sync::Mutex;

    /// A record of some words.
    #[derive(Debug)]
    pub struct Record {
        length: usize,
        words: Mutex<Vec<u64>>,
    }

    impl Record {
        /// Of `n` words, two at least.
        pub fn new(n: usize) -> Self {
            Self { length: n, words: Mutex::new(vec![0; n]) }
        }

        /// Calls a function with the record.
        pub fn with(&self, f: impl FnOnce(&mut [u64])) {
            f(&mut self.words.lock().unwrap());
        }

        /// Some changes; the sum of the amounts.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.length, thread, operations, seed, |place, amount| {
                self.with(|words| super::apply(words, place, amount));
            })
        }

        /// The sum of all amounts.
        pub fn total(&self) -> u64 {
            self.words.lock().unwrap()[0]
        }
    }
}

/// A queue of functions: who finds the record without an owner becomes its owner, and calls what
/// the others have put into the queue; those do not wait.
pub mod after {
    use quiescence::collections::Queue;
    use std::fmt;
    use std::sync::Mutex;
    use std::sync::atomic::{Ordering::SeqCst, fence};

    /// A function that is called with the record.
    type Function = Box<dyn FnOnce(&mut [u64]) + Send>;

    /// Changes that a thread ships at once.
    const BATCH: usize = 64;

    /// A record of some words.
    pub struct Record {
        length: usize,
        /// Held by the owner; no other thread waits for it.
        words: Mutex<Vec<u64>>,
        functions: Queue<Function>,
    }

    impl Record {
        /// Of `n` words, two at least.
        pub fn new(n: usize) -> Self {
            Self { length: n, words: Mutex::new(vec![0; n]), functions: Queue::new() }
        }

        /// Has a function called with the record: now, or by the owner soon.
        pub fn ship(&self, f: impl FnOnce(&mut [u64]) + Send + 'static) {
            self.functions.push(Box::new(f));
            self.own();
        }

        /// Becomes the owner, if there is none, as long as there are functions.
        fn own(&self) {
            loop {
                // SeqCst: of an owner that lets go, and then finds no function, and a thread that
                // puts one in, and then finds an owner, one at least sees what the other has done.
                fence(SeqCst);
                if self.functions.is_empty() {
                    return;
                }
                let Ok(mut words) = self.words.try_lock() else { return };
                while let Some(function) = self.functions.pop() {
                    function(&mut words);
                }
            }
        }

        /// Some changes; the sum of the amounts.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let mut batch = Vec::with_capacity(BATCH);
            let sum = super::run(self.length, thread, operations, seed, |place, amount| {
                batch.push((place, amount));
                if batch.len() == BATCH {
                    let full = std::mem::replace(&mut batch, Vec::with_capacity(BATCH));
                    self.ship(move |words| apply_all(words, full));
                }
            });
            self.ship(move |words| apply_all(words, batch));
            sum
        }

        /// The sum of all amounts, once all functions have been called.
        pub fn total(&self) -> u64 {
            let mut words = self.words.lock().unwrap();
            while let Some(function) = self.functions.pop() {
                function(&mut words);
            }
            words[0]
        }
    }

    fn apply_all(words: &mut [u64], changes: Vec<(usize, u64)>) {
        for (place, amount) in changes {
            super::apply(words, place, amount);
        }
    }

    impl fmt::Debug for Record {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.debug_struct("Record").field("length", &self.length).finish_non_exhaustive()
        }
    }
}
