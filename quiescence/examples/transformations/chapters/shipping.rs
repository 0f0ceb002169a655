//! Locks to ownership: records that all threads update get one owner at a time, to whom the others
//! ship their functions.

use std::num::NonZero;
use std::thread;

use super::random::Random;

/// Words of the record that an operation changes.
const TOUCHED: usize = 16;

/// A record a CPU.
fn records() -> usize {
    thread::available_parallelism().map_or(1, NonZero::get)
}

/// Where in which record something is changed.
#[derive(Clone, Copy, Debug)]
struct Change {
    place: usize,
    amount: u64,
}

impl Change {
    /// Adds to the first word, and changes some others.
    fn apply(self, record: &mut [u64]) {
        let (sum, words) = record.split_first_mut().expect("there is one");
        let mut place = self.place;
        for _ in 0..TOUCHED {
            place = if place < words.len() { place } else { place - words.len() };
            words[place] = words[place].rotate_left(1) ^ self.amount;
            place += 8;
        }
        *sum += self.amount;
    }
}

/// What a thread does: it asks for `operations` changes, of records of so many words.
fn run(
    words: usize,
    thread: usize,
    operations: usize,
    seed: u64,
    mut change: impl FnMut(usize, Change),
) -> u64 {
    let mut random = Random::new(thread, seed);
    let records = records();
    let mut sum = 0;
    for _ in 0..operations {
        let (record, place) = (random.below(records), random.below(words - 1));
        let amount = random.number() & 15;
        change(record, Change { place, amount });
        sum += amount;
    }
    sum
}

/// A lock of each record, which moves to the CPU of each thread that changes it, and for which
/// threads wait.
pub mod before {
    use std::sync::Mutex;

    /// Some records.
    #[derive(Debug)]
    pub struct Records {
        length: usize,
        records: Box<[Mutex<Vec<u64>>]>,
    }

    impl Records {
        /// A record a CPU, each of `n` words, nine at least.
        pub fn new(n: usize) -> Self {
            let records = (0..super::records()).map(|_| Mutex::new(vec![0; n])).collect();
            Self { length: n, records }
        }

        /// Some changes; the sum of the amounts.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            super::run(self.length, thread, operations, seed, |record, change| {
                change.apply(&mut self.records[record].lock().unwrap());
            })
        }

        /// The sum of all amounts.
        pub fn total(&self) -> u64 {
            self.records.iter().map(|record| record.lock().unwrap()[0]).sum()
        }
    }
}

/// A queue of functions for each record: who finds it without an owner becomes its owner, and calls
/// what the others have put into the queue; those do not wait.
pub mod after {
    use super::Change;
    use quiescence::collections::Queue;
    use std::sync::Mutex;
    use std::sync::atomic::{Ordering::SeqCst, fence};

    /// A function that is called with the record.
    type Function = Box<dyn FnOnce(&mut [u64]) + Send>;

    /// Changes that a thread ships in one function: a queue costs more than a change.
    const BATCH: usize = 64;

    #[derive(Debug)]
    struct Record {
        /// Held by the owner; no other thread waits for it.
        words: Mutex<Vec<u64>>,
        functions: Queue<Function>,
    }

    impl Record {
        /// Has a function called with the record: now, or by the owner soon.
        fn ship(&self, f: impl FnOnce(&mut [u64]) + Send + 'static) {
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
    }

    /// Some records.
    #[derive(Debug)]
    pub struct Records {
        length: usize,
        records: Box<[Record]>,
    }

    impl Records {
        /// A record a CPU, each of `n` words, nine at least.
        pub fn new(n: usize) -> Self {
            let record = |_| Record { words: Mutex::new(vec![0; n]), functions: Queue::new() };
            Self { length: n, records: (0..super::records()).map(record).collect() }
        }

        /// Some changes; the sum of the amounts. All of them have been made when all threads have
        /// returned.
        pub fn run(&self, thread: usize, operations: usize, seed: u64) -> u64 {
            let mut batches = vec![Vec::with_capacity(BATCH); self.records.len()];
            let ship = |record: usize, batch: Vec<Change>| {
                let all = batch.into_iter();
                self.records[record].ship(|words| all.for_each(|change| change.apply(words)));
            };
            let sum = super::run(self.length, thread, operations, seed, |record, change| {
                batches[record].push(change);
                if batches[record].len() == BATCH {
                    let batch = &mut batches[record];
                    ship(record, std::mem::replace(batch, Vec::with_capacity(BATCH)));
                }
            });
            batches.into_iter().enumerate().for_each(|(record, batch)| ship(record, batch));
            sum
        }

        /// The sum of all amounts.
        pub fn total(&self) -> u64 {
            self.records.iter().map(|record| record.words.lock().unwrap()[0]).sum()
        }
    }
}
