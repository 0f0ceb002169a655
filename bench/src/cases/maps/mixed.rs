//! Look-ups and updates of keys drawn at random, in threads that do the same.
//!
//! A key is drawn anew for each operation, and not taken from a list: a list of a million would be
//! read from memory, too. Generator and loop are the same for all maps, and compiled into each.

use std::collections::VecDeque;
use std::hint::black_box;
use std::time::Duration;

use hdrhistogram::Histogram;

use super::{Key, Keys, Kinds, Map, Table, recorded};
use crate::cases::object::in_turn;
use crate::cases::tools::Random;
use crate::clock::{TICKS_MAX, histogram, ns_of, ticks};
use crate::sample::Sample;
use crate::slices::{Cue, Scene, both};

/// The low half of a value says which key it is of; the other half says which update made it.
const NUMBER: u64 = u32::MAX as u64;

/// The most keys of a map: their numbers fit into half a word.
pub(crate) const KEYS_MAX: u64 = NUMBER;

/// Keys that a thread has removed and not yet inserted again, at most: so that a key does not come
/// back to the place that it has just left.
const REMOVED_MAX: u64 = 16;

/// The map, and how it is used.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Shape {
    /// Entries, all of which are inserted beforehand.
    pub entries: u64,
    /// Their keys.
    pub keys: Keys,
    /// Threads that do the same.
    pub threads: usize,
    /// Look-ups in a hundred operations.
    pub reads_percent: u32,
    /// Some keys are drawn far more often than others, by [`Zipf`]. Keys that come and go are of
    /// the colder half, drawn evenly.
    pub is_skewed: bool,
    /// An update removes a key, or inserts one that was removed, in turn: a thread has keys of its
    /// own for that, which the others look up too. Without, it gives a key another value.
    pub churns: bool,
}

/// One thread's share of the work.
#[derive(Clone, Debug)]
pub(crate) struct Share {
    pub(crate) shape: Shape,
    /// The thread's number.
    pub(crate) number: usize,
    pub(crate) operations: u64,
    pub(crate) seed: u64,
}

impl Shape {
    /// A rival's map with all entries. It may have begun threads of its own.
    ///
    /// # Panics
    /// If there are too many entries.
    pub(crate) fn build(&self, kinds: Kinds) -> Box<dyn Table> {
        assert!((1..=KEYS_MAX).contains(&self.entries), "{} entries", self.entries);
        let table = kinds.make(self.keys, self.entries as usize);
        table.fill(0..self.entries);
        // Helper threads start here, where they may run on every CPU.
        table.work(&self.share(0, 1 << 10, 0), None);
        table.flush();
        table
    }

    fn share(&self, number: usize, operations: u64, seed: u64) -> Share {
        Share { shape: *self, number, operations, seed }
    }
}

/// One operation of so many is done again, and timed by itself.
const TIMED_EACH: u64 = 8;

/// Runs so many operations in each thread, after a quarter of them as a warm-up. The same seed
/// draws the same operations. Those of all threads in a second, and CPU time for one; then, of some
/// more that are timed one by one, nanoseconds of the median one, and what one in a hundred and one
/// in a thousand exceeds.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If a look-up finds another value than one of its key, or misses a key that is there.
pub(crate) fn measure(table: &dyn Table, shape: &Shape, operations: u64, seed: u64) -> Sample {
    let seed_of = |number: usize| seed.wrapping_mul(1 << 20).wrapping_add(2 * number as u64);
    let play = |operations, is_timed: bool| {
        let scene = Scene::of(shape.threads, |number: usize, cue: &Cue<'_>| {
            table.work(&shape.share(number, operations / 4, seed_of(number)), None);
            let share = shape.share(number, operations, seed_of(number) + 1);
            let mut ticks = histogram(TICKS_MAX);
            cue.work(|_| {
                table.work(&share, is_timed.then_some(&mut ticks));
                ticks
            })
        });
        table.flush();
        scene
    };
    in_turn(|| {
        let Sample { mut values, judged } = Sample::of(&play(operations, false), operations as f64);
        let timed = play(operations.div_ceil(TIMED_EACH), true);
        let ticks = recorded(&timed);
        values.extend([0.5, 0.99, 0.999].map(|at| ns_of(ticks.value_at_quantile(at))));
        Sample::new(values, both(judged, timed.judged()))
    })
}

/// About how many operations each thread does in so much time, from a short trial.
///
/// # Panics
/// As [`measure`].
pub(crate) fn operations_in(map: &dyn Table, shape: &Shape, budget: Duration) -> u64 {
    const TRIAL: u64 = 1 << 12;
    const MOST: f64 = 1e8;
    let speed = measure(map, shape, TRIAL, 0).values[0] / shape.threads as f64;
    ((speed * budget.as_secs_f64()).min(MOST) as u64).max(TRIAL)
}

/// Half a word, spread evenly over what is below `below`.
#[inline(always)]
fn scaled(half: u32, below: u64) -> u64 {
    (u64::from(half) * below) >> 32
}

/// Keys as often as by Zipf's law: the one of rank k in proportion to k^-0.99, as benchmarks of
/// stores have it. Each gets the integral of that from half a rank below to half a rank above,
/// whose inverse needs no logarithm: the first key is a tenth too frequent, the second one a
/// fortieth.
struct Zipf {
    low: f64,
    span: f64,
}

impl Zipf {
    /// One less than the exponent; and its reciprocal.
    const REST: f64 = 0.01;
    const TIMES: i32 = 100;

    fn new(entries: u64) -> Self {
        let [low, high] = [0.5, entries as f64 + 0.5].map(|rank| rank.powf(Self::REST));
        Self { low, span: high - low }
    }

    #[inline(always)]
    fn rank(&self, half: u32, entries: u64) -> u64 {
        let share = (f64::from(half) + 0.5) / (1_u64 << 32) as f64;
        let rank = (self.low + share * self.span).powi(Self::TIMES) - 0.5;
        (rank as u64).min(entries - 1)
    }
}

/// The loop, compiled once for each map; and with each operation timed.
pub(super) fn work<K: Key, M: Map<K>, const IS_TIMED: bool>(
    map: &M,
    share: &Share,
    took: &mut Histogram<u64>,
) {
    let Share { shape, number, operations, seed } = *share;
    let Shape { entries, threads, reads_percent, is_skewed, churns, .. } = shape;
    let map = black_box(map);
    let mut thread = map.thread();
    let mut random = Random::new(0, seed);
    let mut key = K::default();
    let mut churn = Churn::new(entries, number as u64, threads as u64);
    let zipf = Zipf::new(entries);
    let (mut wrong, mut absent) = (0, 0_u64);
    for turn in 0..operations {
        let drawn = random.number();
        let half = drawn as u32;
        let reads = scaled((drawn >> 32) as u32, 100) < u64::from(reads_percent);
        let stays = reads || !churns;
        let chosen = match (is_skewed, stays) {
            (false, _) => scaled(half, entries),
            (true, true) => zipf.rank(half, entries),
            // A hot key that is gone would be missed by many look-ups.
            (true, false) => entries - 1 - scaled(half, entries / 2),
        };
        if stays {
            key.set(chosen);
        }
        let begin = IS_TIMED.then(ticks);
        if reads {
            match map.get(&mut thread, &key) {
                Some(value) => wrong |= (value ^ chosen) & NUMBER,
                None => absent += 1,
            }
        } else if !churns {
            map.overwrite(&mut thread, &key, chosen | turn << 32);
        } else {
            churn.turn(map, &mut thread, chosen, &mut key);
        }
        if let Some(begin) = begin {
            took.saturating_record(ticks().saturating_sub(begin));
        }
    }
    let removed_max = churn.removed_max as u64;
    churn.end(map, &mut thread, &mut key);
    assert_eq!(wrong, 0, "every look-up found a value of its key");
    // Several times as many as if all threads had removed all that they may; and one in 16 at
    // least, since a thread may lose its CPU just when it has removed a hot key, see `Churn::own`.
    let removed = (4 * threads as u64 * removed_max).clamp(entries / 16, entries);
    let churns = churns && reads_percent < 100;
    let absent_max = if churns { operations * removed / entries + 64 } else { 0 };
    assert!(absent <= absent_max, "{absent} keys of {operations} were not found");
}

/// What a thread removes, and inserts again.
struct Churn {
    entries: u64,
    number: u64,
    threads: u64,
    removed: VecDeque<u64>,
    removed_max: usize,
}

impl Churn {
    fn new(entries: u64, number: u64, threads: u64) -> Self {
        // So that few of all keys are missing at a time.
        let removed_max = (entries / (64 * threads)).clamp(1, REMOVED_MAX) as usize;
        let removed = VecDeque::with_capacity(removed_max);
        Self { entries, number, threads, removed, removed_max }
    }

    /// The thread's own key that is nearest; no other thread removes it.
    #[inline(always)]
    fn own(&self, chosen: u64) -> u64 {
        let own = chosen - chosen % self.threads + self.number;
        if own < self.entries { own } else { self.number.min(self.entries - 1) }
    }

    #[inline(always)]
    fn turn<K: Key, M: Map<K>>(
        &mut self,
        map: &M,
        thread: &mut M::Thread,
        chosen: u64,
        key: &mut K,
    ) {
        if self.removed.len() == self.removed_max {
            self.insert_oldest(map, thread, key);
            return;
        }
        let own = self.own(chosen);
        key.set(own);
        if map.remove(thread, key) {
            self.removed.push_back(own);
        }
    }

    #[inline(always)]
    fn insert_oldest<K: Key, M: Map<K>>(&mut self, map: &M, thread: &mut M::Thread, key: &mut K) {
        if let Some(number) = self.removed.pop_front() {
            key.set(number);
            assert!(map.insert(thread, key, number), "no other thread inserts it");
        }
    }

    /// All keys are there again.
    fn end<K: Key, M: Map<K>>(mut self, map: &M, thread: &mut M::Thread, key: &mut K) {
        while !self.removed.is_empty() {
            self.insert_oldest(map, thread, key);
        }
    }
}

#[cfg(test)]
mod tests {
    use quiescence::collections::HashMap;

    use super::super::Fast;
    use super::super::tests::{Forgetful, with};
    use super::*;

    /// A thousand words.
    fn shape(threads: usize, reads_percent: u32, churns: bool) -> Shape {
        let (keys, is_skewed) = (Keys::Words, false);
        Shape { entries: 1000, keys, threads, reads_percent, is_skewed, churns }
    }

    /// Shares of look-ups, and whether updates churn.
    const ALL: [(u32, bool); 4] = [(100, false), (50, false), (90, true), (50, true)];

    #[test]
    fn every_map_finds_all_keys_beside_updates() {
        let all = [(Keys::Words, 2), (Keys::Strings, 2), (Keys::OwnHash, 1)];
        for (name, kinds, keys, threads) in with(all) {
            for (reads_percent, churns) in ALL {
                // As the two halves of the mixes are drawn.
                let is_skewed = reads_percent == 50;
                let shape = Shape { keys, is_skewed, ..shape(threads, reads_percent, churns) };
                let map = shape.build(kinds);
                // That every look-up finds a value of its key is asserted within, twice: what was
                // removed is there again.
                for seed in [1, 2] {
                    let seen = measure(&*map, &shape, 2000, seed);
                    let is_figure = |figure: f64| figure > 0.0 && figure.is_finite();
                    assert!(seen.values.iter().copied().all(is_figure), "{name}: {seen:?}");
                    assert!(seen.values.len() == 5 && seen.values[2..].is_sorted(), "{seen:?}");
                }
            }
        }
    }

    #[test]
    fn shares_are_drawn_as_they_are_asked_for() {
        let mut random = Random::new(0, 1);
        let mut below = [0_u32; 100];
        for _ in 0..100_000 {
            below[scaled((random.number() >> 32) as u32, 100) as usize] += 1;
        }
        assert!(below.iter().all(|&times| (800..1200).contains(&times)), "{below:?}");
        let ends = [scaled(0, 1000), scaled(u32::MAX, 1000), scaled(u32::MAX, KEYS_MAX)];
        assert_eq!(ends, [0, 999, KEYS_MAX - 1]);
    }

    /// Held against the law itself.
    #[test]
    fn keys_are_as_frequent_as_zipf_s_law_has_it() {
        const DRAWS: u32 = 1_000_000;
        for entries in [1_u64, 300, 100_000] {
            let (zipf, mut random) = (Zipf::new(entries), Random::new(0, 1));
            let mut drawn = vec![0_u32; entries as usize];
            (0..DRAWS)
                .for_each(|_| drawn[zipf.rank(random.number() as u32, entries) as usize] += 1);
            let law = |rank: usize| (rank as f64 + 1.0).powf(-0.99);
            let sum: f64 = (0..entries as usize).map(law).sum();
            for first in [1, 10, 100].map(|first: usize| first.min(drawn.len())) {
                let expected = (0..first).map(law).sum::<f64>() / sum;
                let seen = f64::from(drawn[..first].iter().sum::<u32>()) / f64::from(DRAWS);
                assert!((seen / expected - 1.0).abs() < 0.12, "{first}: {seen}, not {expected}");
            }
            assert_eq!([0, u32::MAX].map(|half| zipf.rank(half, entries)), [0, entries - 1]);
        }
    }

    #[test]
    fn threads_remove_keys_of_their_own_only() {
        for (entries, threads) in [(1000, 2), (1000, 3), (10, 64)] {
            for number in 0..threads.min(entries) {
                let churn = Churn::new(entries, number, threads);
                for chosen in 0..entries {
                    let own = churn.own(chosen);
                    assert!(own < entries && own % threads == number, "{own} of {number}");
                }
            }
        }
    }

    /// With 256 threads and 1,000 keys it was taken for a fault that one in four was missing.
    #[test]
    fn keys_that_the_other_threads_have_removed_may_be_missed() {
        let map = HashMap::<u64, u64, Fast>::with_capacity(1000);
        map.fill(0..1000);
        assert!(
            (1..256).all(|number| map.remove(&u64::of(number))),
            "each thread has one of its own"
        );
        let share = shape(256, 90, true).share(0, 10_000, 1);
        work::<u64, _, false>(&map, &share, &mut histogram(TICKS_MAX));
    }

    #[test]
    #[should_panic(expected = "were not found")]
    fn a_map_that_loses_a_value_is_found_out() {
        shape(1, 100, false).build(Kinds::of_words::<Forgetful, Forgetful>());
    }
}
