//! A hash table of chains of one element: two threads search for keys, and replace what some hold.
//!
//! Rivals that are no maps get the same table: an array of pointers to nodes, found by a hash of
//! the key. A replacement allocates the new node, puts it in the place of the old one and gives
//! that up: to the rival's reclamation, or, where a lock is around each pointer, at once. Maps keep
//! values as they do. All hash alike, and every search checks that it found the value of its key.

use std::hash::{BuildHasherDefault, Hasher};
use std::thread;

use super::maps::Map;
use super::object::in_turn;
use super::tools::Random;
use crate::sample::Sample;
use crate::serve::Replace;
use crate::shapes::{Ids, Numbered};
use crate::slices::{Cue, Scene};

/// Keys of the table.
pub(crate) const KEYS: usize = 1000;

/// Chains of the table: a power of two, so that each key can have one of its own.
pub(crate) const BUCKETS: usize = 1024;

/// Words of a value.
pub(crate) const WORDS: usize = 7;

/// A value: its key, again and again.
pub(crate) type Value = [u64; WORDS];

/// Operations that are drawn; threads go through them again and again.
const OPERATIONS: usize = 1 << 13;

/// Operations between two quiescent states of QSBR, and two looks whether all are done.
const PAUSE: usize = 64;

/// Makes a table with these keys.
pub(crate) type Make = fn(&[u64]) -> Box<dyn Table>;

/// Runs so many operations in each of `threads` threads, of which the given share are searches
/// and the rest replacements. The same seed draws the same operations.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If a search does not find the value of its key.
pub(crate) fn measure(
    make: Make,
    keys: &[u64],
    threads: usize,
    searches_percent: u32,
    operations: usize,
    seed: u64,
) -> Sample {
    // Of many keys most are drawn.
    let count = OPERATIONS.max(keys.len().next_power_of_two());
    let draw = |seed| draw(keys, count, searches_percent, seed);
    let rounds = operations.div_ceil(count).max(1);
    in_turn(|| {
        let table = make(keys);
        // Helper threads start here, where they may run on every CPU.
        let warm_up = draw(seed);
        thread::scope(|scope| {
            scope.spawn(|| table.run(&warm_up, 1)).join().expect("a warm-up does not panic");
        });
        table.flush();
        let scene = Scene::of(threads, |number: usize, cue: &Cue<'_>| {
            let drawn = draw(seed.wrapping_add(1 + number as u64));
            table.run(&drawn, 0);
            cue.work(|_| table.run(&drawn, rounds))
        });
        table.flush();
        drop(table);
        Sample::of(&scene, (rounds * count) as f64)
    })
}

/// A table that threads run operations on.
pub(crate) trait Table: Sync {
    /// Runs the operations so often in the calling thread; with no round it only registers.
    ///
    /// # Panics
    /// If a search does not find the value of its key.
    fn run(&self, operations: &[Operation], rounds: usize);
    /// Frees what was replaced, as far as the rival can be asked to.
    fn flush(&self);
}

/// A search for a key, or a replacement of its value. `struct operation` in `c/table.h` is the
/// same.
#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(C)]
pub(crate) struct Operation {
    pub(crate) key: u64,
    pub(crate) replaces: bool,
}

/// The hash of all tables: Fibonacci's, with the good bits brought down as well. Also in
/// `c/table.h`.
#[inline(always)]
pub(crate) fn hash(key: u64) -> u64 {
    let hash = key.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    hash ^ (hash >> 32)
}

/// The chain of a key.
#[inline(always)]
pub(crate) fn bucket(key: u64) -> usize {
    hash(key) as usize % BUCKETS
}

/// [`hash`] for maps.
pub(crate) type Hash = BuildHasherDefault<Hashing>;

/// A key's.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hashing(u64);

impl Hasher for Hashing {
    #[inline(always)]
    fn finish(&self) -> u64 {
        hash(self.0)
    }

    #[inline(always)]
    fn write_u64(&mut self, key: u64) {
        self.0 = key;
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("a key is a word");
    }
}

/// Keys each of which has a chain of its own.
pub(crate) fn keys() -> Vec<u64> {
    let mut taken = vec![false; BUCKETS];
    let is_alone = |key: &u64| !std::mem::replace(&mut taken[bucket(*key)], true);
    (0..).filter(is_alone).take(KEYS).collect()
}

/// So many operations with so many searches in a hundred.
fn draw(keys: &[u64], count: usize, searches_percent: u32, seed: u64) -> Vec<Operation> {
    let mut random = Random::new(0, seed);
    (0..count)
        .map(|_| Operation {
            key: keys[(random.number() % keys.len() as u64) as usize],
            replaces: random.number() % 100 >= u64::from(searches_percent),
        })
        .collect()
}

/// An element of a chain. There is no next one, but a chain has to look.
#[derive(quiescence::Weigh)]
struct Node {
    key: u64,
    value: Value,
}

/// An array of pointers that a scheme protects, as a map whose keys stay.
pub(crate) struct Chains<S: Replace> {
    // Before the scheme, which they may need while they are dropped.
    places: Vec<S::Place<Node>>,
    scheme: S,
}

impl<S: Replace> Map<u64, Value> for Chains<S> {
    type Thread = S::Thread;

    fn of(entries: impl Iterator<Item = (u64, Value)>) -> Self {
        let scheme = S::default();
        // Buckets without a key have a node that no thread looks for.
        let mut nodes = [(u64::MAX, [u64::MAX; WORDS]); BUCKETS];
        for (key, value) in entries {
            nodes[bucket(key)] = (key, value);
        }
        let place = |(key, value)| scheme.place(Node { key, value });
        Self { places: nodes.into_iter().map(place).collect(), scheme }
    }

    fn thread(&self) -> S::Thread {
        self.scheme.thread()
    }

    #[inline(always)]
    fn read<R>(
        &self,
        thread: &mut S::Thread,
        key: &u64,
        look: impl FnOnce(&Value) -> R,
    ) -> Option<R> {
        let place = &self.places[bucket(*key)];
        self.scheme.read(thread, place, |node| (node.key == *key).then(|| look(&node.value)))
    }

    #[inline(always)]
    fn replace(&self, thread: &mut S::Thread, &key: &u64, value: Value) {
        self.scheme.replace(thread, &self.places[bucket(key)], Node { key, value });
    }

    #[inline(always)]
    fn pause(thread: &mut S::Thread) {
        S::pause(thread);
    }

    fn flush(&self) {
        self.scheme.flush();
    }
}

/// Values by ids that the table gives out: look-ups, and updates that remove a value and insert
/// another one, under a new id.
///
/// A map is such a table by numbers that are counted up. The current id of a key is in an array
/// that all tables pay alike for. So a look-up may have an id that is gone; then it takes the next.
impl<T: Ids<[u64; 1]>> Map<u64, [u64; 1]> for Numbered<T> {
    type Thread = ();

    /// Its keys are counted up from 0.
    fn of(entries: impl Iterator<Item = (u64, [u64; 1])>) -> Self {
        Self::of(entries.map(|(_, value)| value))
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<R>(&self, (): &mut (), &key: &u64, look: impl FnOnce(&[u64; 1]) -> R) -> Option<R> {
        let mut id = self.id(key as usize);
        loop {
            let found = self.table.read(id, |value| *value);
            let now = self.id(key as usize);
            if found.is_some() || now == id {
                return found.as_ref().map(look);
            }
            id = now;
        }
    }

    #[inline(always)]
    fn replace(&self, (): &mut (), &key: &u64, value: [u64; 1]) {
        assert!(self.renew(key as usize, value), "an id is removed once");
    }

    fn flush(&self) {
        self.table.flush();
    }
}

/// A map of such values, as its users would use it: a guard for each operation.
pub(crate) struct Mapped<M, const WORDS: usize>(M);

impl<M: Map<u64, [u64; WORDS]>, const WORDS: usize> Mapped<M, WORDS> {
    pub(crate) fn boxed(keys: &[u64]) -> Box<dyn Table> {
        Box::new(Self(M::of(keys.iter().map(|&key| (key, [key; WORDS])))))
    }
}

/// The loop, compiled once for each rival.
impl<M: Map<u64, [u64; WORDS]>, const WORDS: usize> Table for Mapped<M, WORDS> {
    fn run(&self, operations: &[Operation], rounds: usize) {
        let (map, mut thread) = (&self.0, self.0.thread());
        let mut wrong = 0;
        for _ in 0..rounds {
            for operations in operations.chunks(PAUSE) {
                for &Operation { key, replaces } in operations {
                    if replaces {
                        map.replace(&mut thread, &key, [key; WORDS]);
                    } else {
                        let found = map.read(&mut thread, &key, |value| value[0]);
                        wrong |= found.unwrap_or(!key) ^ key;
                    }
                }
                M::pause(&mut thread);
            }
        }
        assert_eq!(wrong, 0, "every search found the value of its key");
    }

    fn flush(&self) {
        self.0.flush();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::maps::tests::Forgetful;

    #[test]
    fn every_key_has_a_chain_of_its_own() {
        let keys = keys();
        let buckets: std::collections::BTreeSet<_> = keys.iter().map(|&key| bucket(key)).collect();
        assert_eq!((keys.len(), buckets.len()), (KEYS, KEYS));
    }

    #[test]
    fn operations_are_drawn_by_the_seed_and_the_share() {
        let keys = keys();
        assert_eq!(draw(&keys, 100, 90, 1), draw(&keys, 100, 90, 1));
        assert_ne!(draw(&keys, 100, 90, 1), draw(&keys, 100, 90, 2));
        for share in [0, 50, 90, 100] {
            let searches = draw(&keys, OPERATIONS, share, 7).iter().filter(|o| !o.replaces).count();
            let expected = OPERATIONS * share as usize / 100;
            assert!(searches.abs_diff(expected) < 200, "{searches}, and {expected} expected");
        }
    }

    #[test]
    #[should_panic(expected = "a measurement does not panic")]
    fn a_table_that_loses_a_value_is_found_out() {
        measure(Mapped::<Forgetful, WORDS>::boxed, &keys(), 1, 50, 1, 5);
    }
}
