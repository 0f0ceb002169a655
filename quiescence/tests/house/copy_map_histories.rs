//! Histories of a map of pairs that threads use all at once: each operation must have happened at
//! one moment between its begin and its end. Torture does this for `HashMap`, with the same checker
//! (`verify/torture/src/maps`).

#[path = "../../../verify/torture/src/maps/history.rs"]
mod history;

use history::{After, Before, Operation};
use quiescence::collections::CopyMap;
use quiescence::collections::hash_map::Operation as Change;

use crate::common::*;

const THREADS: usize = 3;
const KEYS: u64 = 12;
const ROUNDS: u64 = 6;
const OPERATIONS: u64 = 500;

/// Keys that are in no history: for the table to grow.
const FILLERS_FROM: u64 = 1_000;

hasher! {
    /// Everything into one bucket, under two tags.
    Crowding: |number| (number % 2) << 63
}

type Crowded = BuildHasherDefault<Crowding>;

/// What a walk has seen of each key.
fn record_seen(log: &mut Vec<(u64, Operation)>, (begin, end): (u64, u64), seen: &[(u64, u64)]) {
    let mut record = |key, value| {
        let (before, after) = (Before::Was(value), After::Same);
        log.push((key, Operation { begin, end, before, after, is_sure: true }));
    };
    for key in 0..KEYS {
        let values = seen.iter().filter(|(other, _)| *other == key).take(history::LOOKS_MAX);
        values.clone().for_each(|(_, value)| record(key, Some(*value)));
        if values.count() == 0 {
            record(key, None);
        }
    }
}

/// A map, and when things were done to it.
struct Copies<S> {
    map: CopyMap<u64, u64, S>,
    clock: AtomicU64,
    values: AtomicU64,
    /// How many fillers come and go at once.
    fillers: u64,
}

impl<S: BuildHasher + Default> Copies<S> {
    fn moment(&self) -> u64 {
        // Read-modify-writes of one counter: moments are in the order in which they were taken.
        self.clock.fetch_add(1, AcqRel)
    }

    fn work(&self, numbers: &mut Random) -> Vec<(u64, Operation)> {
        let mut log = Vec::new();
        for _ in 0..OPERATIONS {
            let (key, choice) = (numbers.below(KEYS), numbers.below(16));
            let begin = self.moment();
            if choice == 0 {
                let all: Vec<_> = self.map.iter().collect();
                record_seen(&mut log, (begin, self.moment()), &all);
                continue;
            }
            let Some((before, after)) = self.change(choice, key, numbers) else { continue };
            let end = self.moment();
            log.push((key, Operation { begin, end, before, after, is_sure: true }));
        }
        log
    }

    /// An operation on one key, or one that moves all.
    fn change(&self, choice: u64, key: u64, numbers: &mut Random) -> Option<(Before, After)> {
        let (map, new) = (&self.map, self.values.fetch_add(1, Relaxed));
        let (before, after) = match choice {
            1 => {
                let fillers = FILLERS_FROM..FILLERS_FROM + self.fillers;
                match numbers.below(3) {
                    0 => map.extend(fillers.map(|key| (key, new))),
                    1 => map.reserve(numbers.below(500) as usize),
                    _ => {
                        fillers.for_each(|key| _ = map.remove(&key));
                        map.shrink_to_fit();
                    }
                }
                return None;
            }
            2..6 => (map.get(&key), After::Same),
            6 | 7 => (map.insert(key, new), After::Is(Some(new))),
            8 | 9 => (map.remove(&key), After::Is(None)),
            10 | 11 => {
                let mut old = None;
                let updated = map.update(&key, |value| {
                    old = Some(value);
                    new
                });
                (old.filter(|_| updated.is_some()), After::Is(updated))
            }
            12 => {
                let found = map.get_or_insert_with(key, || new);
                (Some(found).filter(|found| *found != new), After::Is(Some(found)))
            }
            _ => {
                let mut old = None;
                let _decided = map.compute(key, |value| {
                    old = value;
                    match choice {
                        13 => Change::Insert(new),
                        14 => Change::Remove,
                        _ => Change::Abort(()),
                    }
                });
                let after = match choice {
                    13 => After::Is(Some(new)),
                    14 => After::Is(None),
                    _ => After::Same,
                };
                (old, after)
            }
        };
        Some((Before::Was(before), after))
    }
}

/// Has threads work on a map of each round, and checks the history of each key.
fn histories_are_linearizable<S: BuildHasher + Default + Send + Sync>(fillers: u64) {
    for round in 0..ROUNDS {
        let map = CopyMap::<u64, u64, S>::with_hasher(S::default());
        let (clock, values) = (AtomicU64::new(0), AtomicU64::new(0));
        let copies = Copies { map, clock, values, fillers };
        let seed = |thread| THREADS as u64 * round + thread as u64;
        let logs = threads(THREADS, |thread| copies.work(&mut Random(seed(thread))));
        for key in 0..KEYS {
            let of_key = logs.iter().flatten().filter(|(of, _)| *of == key);
            let operations: Vec<_> = of_key.map(|(_, operation)| *operation).collect();
            if let Err(refused) = history::check(None, &operations) {
                panic!("key {key} in round {round}: {refused}");
            }
        }
    }
}

#[test]
fn histories_of_pairs_are_linearizable() {
    histories_are_linearizable::<std::hash::RandomState>(40);
    // A table of thousands moves, by several threads.
    histories_are_linearizable::<std::hash::RandomState>(2_000);
}

#[test]
fn histories_of_crowded_pairs_are_linearizable() {
    histories_are_linearizable::<Crowded>(40);
}
