//! Histories of a map that threads use all at once: each operation must have happened at one moment
//! between its begin and its end. Torture does the same for longer, with delays
//! (`verify/torture/src/maps`).

#[path = "../../../verify/torture/src/maps/history.rs"]
mod history;

use std::fmt::Debug;
use std::hash::{BuildHasher, BuildHasherDefault, Hash, Hasher};
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Relaxed};
use std::thread;

use history::{After, Before, Operation};
use quiescence::Weigh;
use quiescence::collections::hash_map::{Compute, Operation as Change};
use quiescence::collections::{CopyMap, HashMap};

const THREADS: u64 = 3;
const KEYS: u64 = 12;
const ROUNDS: u64 = if cfg!(miri) { 1 } else { 6 };
const OPERATIONS: u64 = if cfg!(miri) { 20 } else { 500 };

/// Keys that are in no history: for the table to grow.
const FILLERS_FROM: u64 = 1_000;

/// Numbers without a pattern: SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }
}

/// Everything into one bucket, under two tags.
#[derive(Default)]
struct Crowding(u64);

impl Hasher for Crowding {
    fn write(&mut self, bytes: &[u8]) {
        self.0 = bytes.iter().fold(self.0, |sum, byte| sum + u64::from(*byte));
    }

    fn finish(&self) -> u64 {
        (self.0 % 2) << 63
    }
}

type Crowded = BuildHasherDefault<Crowding>;

/// What stands for a number.
trait Of: Clone + Eq + Hash + Debug + Weigh + Send + Sync + 'static {
    fn of(number: u64) -> Self;
    fn number(&self) -> u64;
}

impl Of for u64 {
    fn of(number: u64) -> Self {
        number
    }

    fn number(&self) -> u64 {
        *self
    }
}

impl Of for String {
    fn of(number: u64) -> Self {
        number.to_string()
    }

    fn number(&self) -> u64 {
        self.parse().expect("it was made of a number")
    }
}

struct Shared<T: Of, S> {
    map: HashMap<T, T, S>,
    clock: AtomicU64,
    values: AtomicU64,
}

impl<T: Of, S: BuildHasher + Default + Send + Sync> Shared<T, S> {
    fn moment(&self) -> u64 {
        // What ended before this moment is seen by what begins after it.
        self.clock.fetch_add(1, AcqRel)
    }

    fn value(&self) -> T {
        T::of(self.values.fetch_add(1, Relaxed))
    }

    fn work(&self, numbers: &mut Numbers) -> Vec<(u64, Operation)> {
        let mut log = Vec::new();
        for _ in 0..OPERATIONS {
            let key = numbers.below(KEYS);
            match numbers.below(20) {
                0 => self.walk(&mut log),
                1 => self.retain(&mut log, numbers.below(1 << KEYS)),
                2 => self.resize(numbers),
                choice => {
                    let begin = self.moment();
                    let (before, after) = self.change(choice, &T::of(key));
                    let end = self.moment();
                    log.push((key, Operation { begin, end, before, after, is_sure: true }));
                }
            }
        }
        log
    }

    /// An operation on one key.
    fn change(&self, choice: u64, key: &T) -> (Before, After) {
        let view = self.map.read();
        let was = |value: Option<&T>| Before::Was(value.map(T::number));
        let is = |value: Option<&T>| After::Is(value.map(T::number));
        match choice {
            3..8 => (was(view.get(key)), After::Same),
            8 if view.contains_key(key) => (Before::Present, After::Same),
            8 => (was(None), After::Same),
            9 | 10 => {
                let new = self.value();
                (was(view.insert(key.clone(), new.clone())), is(Some(&new)))
            }
            11 | 12 => (was(view.remove(key)), After::Is(None)),
            13 => match self.map.remove(key) {
                true => (Before::Present, After::Is(None)),
                false => (was(None), After::Same),
            },
            14 | 15 => {
                let mut old = None;
                let new = view.update(key, |value| {
                    old = Some(value.clone());
                    self.value()
                });
                (was(old.as_ref().filter(|_| new.is_some())), is(new))
            }
            16 => {
                let new = self.value();
                let found = view.get_or_insert(key.clone(), new.clone());
                let before = if *found == new { None } else { Some(found) };
                (was(before), is(Some(found)))
            }
            _ => {
                let mut seen = None;
                let result = view.compute(key.clone(), |entry| {
                    seen = entry.map(|(_, value)| value.clone());
                    match (choice, entry) {
                        (17, _) => Change::Insert(self.value()),
                        (18, _) => Change::Remove,
                        _ => Change::Abort(()),
                    }
                });
                match result {
                    Compute::Inserted(_, new) => (was(None), is(Some(new))),
                    Compute::Updated { old, new } => (was(Some(old.1)), is(Some(new.1))),
                    Compute::Removed(_, old) => (was(Some(old)), is(None)),
                    Compute::Aborted(()) => (was(seen.as_ref()), After::Same),
                    Compute::Absent => (was(None), After::Same),
                }
            }
        }
    }

    /// All keys: what each of them had at some moment.
    fn walk(&self, log: &mut Vec<(u64, Operation)>) {
        let begin = self.moment();
        let view = self.map.read();
        let seen: Vec<_> = view.iter().map(|(key, value)| (key.number(), value.number())).collect();
        drop(view);
        let end = self.moment();
        record_seen(log, (begin, end), &seen);
    }

    fn retain(&self, log: &mut Vec<(u64, Operation)>, stay: u64) {
        let begin = self.moment();
        let (mut seen, mut ended, mut asked) = (Vec::new(), Vec::new(), None);
        self.map.retain(|key, value| {
            let (key, value) = (key.number(), value.number());
            seen.push((key, value));
            // An entry that has moved meanwhile is asked about again: the same removal.
            if asked.is_some_and(|(of, was, _)| (of, was) != (key, value)) {
                self.over(&mut asked, &mut ended);
            }
            let stays = key >= FILLERS_FROM || stay >> key & 1 == 1;
            if !stays {
                asked.get_or_insert_with(|| (key, value, self.moment()));
            }
            stays
        });
        self.over(&mut asked, &mut ended);
        record_seen(log, (begin, self.moment()), &seen);
        log.append(&mut ended);
    }

    /// Records the removal that was asked for last, if there is one. It does not say whether this
    /// call removed the entry, or another one.
    fn over(&self, asked: &mut Option<(u64, u64, u64)>, ended: &mut Vec<(u64, Operation)>) {
        let Some((key, value, begin)) = asked.take() else { return };
        let (before, after) = (Before::Was(Some(value)), After::Is(None));
        ended.push((key, Operation { begin, end: self.moment(), before, after, is_sure: false }));
    }

    fn resize(&self, numbers: &mut Numbers) {
        let fillers = FILLERS_FROM..FILLERS_FROM + 40;
        match numbers.below(3) {
            0 => self.map.extend(fillers.map(|key| (T::of(key), self.value()))),
            1 => self.map.reserve(numbers.below(500) as usize),
            _ => {
                fillers.for_each(|key| {
                    self.map.remove(&T::of(key));
                });
                self.map.shrink_to_fit();
            }
        }
    }
}

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

/// The same of pairs that are copied.
struct Copies<S> {
    map: CopyMap<u64, u64, S>,
    clock: AtomicU64,
    values: AtomicU64,
}

impl<S: BuildHasher + Default> Copies<S> {
    fn moment(&self) -> u64 {
        // As above.
        self.clock.fetch_add(1, AcqRel)
    }

    fn work(&self, numbers: &mut Numbers) -> Vec<(u64, Operation)> {
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
    fn change(&self, choice: u64, key: u64, numbers: &mut Numbers) -> Option<(Before, After)> {
        let (map, new) = (&self.map, self.values.fetch_add(1, Relaxed));
        let (before, after) = match choice {
            1 => {
                match numbers.below(3) {
                    0 => map.extend((FILLERS_FROM..FILLERS_FROM + 40).map(|key| (key, new))),
                    1 => map.reserve(numbers.below(500) as usize),
                    _ => {
                        (FILLERS_FROM..FILLERS_FROM + 40).for_each(|key| _ = map.remove(&key));
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
fn check<M: Sync>(
    make: impl Fn() -> M,
    work: impl Fn(&M, &mut Numbers) -> Vec<(u64, Operation)> + Sync,
) {
    for round in 0..ROUNDS {
        let shared = make();
        let logs: Vec<_> = thread::scope(|scope| {
            let start = |thread| {
                let (shared, work) = (&shared, &work);
                scope.spawn(move || work(shared, &mut Numbers(THREADS * round + thread)))
            };
            let threads: Vec<_> = (0..THREADS).map(start).collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).collect()
        });
        for key in 0..KEYS {
            let of_key = logs.iter().flatten().filter(|(of, _)| *of == key);
            let operations: Vec<_> = of_key.map(|(_, operation)| *operation).collect();
            if let Err(refused) = history::check(None, &operations) {
                panic!("key {key} in round {round}: {refused}");
            }
        }
    }
}

fn histories_are_linearizable<T: Of, S: BuildHasher + Default + Send + Sync>() {
    let make = || {
        let map = HashMap::<T, T, S>::with_hasher(S::default());
        Shared { map, clock: AtomicU64::new(0), values: AtomicU64::new(0) }
    };
    check(make, Shared::work);
}

fn histories_of_copies_are_linearizable<S: BuildHasher + Default + Send + Sync>() {
    let make = || {
        let map = CopyMap::<u64, u64, S>::with_hasher(S::default());
        Copies { map, clock: AtomicU64::new(0), values: AtomicU64::new(0) }
    };
    check(make, Copies::work);
}

#[test]
fn histories_of_pairs_that_are_copied_are_linearizable() {
    histories_of_copies_are_linearizable::<std::hash::RandomState>();
}

#[test]
fn histories_of_crowded_pairs_that_are_copied_are_linearizable() {
    histories_of_copies_are_linearizable::<Crowded>();
}

#[test]
fn histories_of_entries_in_slots_are_linearizable() {
    histories_are_linearizable::<u64, std::hash::RandomState>();
}

#[test]
fn histories_of_crowded_entries_in_slots_are_linearizable() {
    histories_are_linearizable::<u64, Crowded>();
}

#[test]
fn histories_of_entries_in_boxes_are_linearizable() {
    histories_are_linearizable::<String, std::hash::RandomState>();
}

#[test]
fn histories_of_crowded_entries_in_boxes_are_linearizable() {
    histories_are_linearizable::<String, Crowded>();
}
