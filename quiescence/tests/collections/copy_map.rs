//! `collections::CopyMap`: what each operation does, alone and beside others, and with user code
//! that panics or uses the map.

use crate::common::*;
use std::collections::{BTreeSet, HashMap as Model};

use crate::common::user_types::Constant;
use equivalent::Equivalent;
use quiescence::collections::copy_map::{CopyMap, Operation};
use quiescence::sync::NoUninit;

use super::keys::{GoodHash, Of};

hasher! {
    /// Few values, so that buckets overflow.
    Poor: |number| ((number % 3) << 56) | (number % 5)
}

type PoorHash = BuildHasherDefault<Poor>;

/// Runs the same random operations on a map and on the standard library's.
fn as_the_model<K: Of + NoUninit, V: Of + NoUninit, S: BuildHasher + Default>(
    keys: u64,
    rounds: usize,
) {
    let map = CopyMap::<K, V, S>::with_hasher(S::default());
    let (mut model, mut numbers) = (Model::<K, V>::new(), Random(keys));
    for round in 0..rounds {
        let (key, value) = (K::of(numbers.below(keys)), V::of(numbers.below(200)));
        match numbers.below(10) {
            0..3 => assert_eq!(map.insert(key, value), model.insert(key, value)),
            3 => {
                let is_new = !model.contains_key(&key);
                assert_eq!(map.insert_if_absent(key, value), is_new);
                model.entry(key).or_insert(value);
            }
            4 => assert_eq!(map.remove(&key), model.remove(&key)),
            5 => assert_eq!(map.remove_entry(&key), model.remove_entry(&key)),
            6 => {
                let after = model.get_mut(&key).map(|place| {
                    *place = value;
                    value
                });
                assert_eq!(map.update(&key, |_| value), after);
            }
            7 => {
                let expected = *model.entry(key).or_insert(value);
                let found = match round % 2 {
                    0 => map.get_or_insert(key, value),
                    _ => map.get_or_insert_with(key, || value),
                };
                assert_eq!(found, expected);
            }
            8 => {
                let decision = numbers.below(3);
                let done = map.compute(key, |old| {
                    assert_eq!(old, model.get(&key).copied());
                    match decision {
                        0 => Operation::Insert(value),
                        1 => Operation::Remove,
                        _ => Operation::Abort(round),
                    }
                });
                let expected = match decision {
                    0 => Ok(model.insert(key, value)),
                    1 => Ok(model.remove(&key)),
                    _ => Err(round),
                };
                assert_eq!(done, expected);
            }
            _ => {
                assert_eq!(map.get(&key), model.get(&key).copied());
                assert_eq!(map.contains_key(&key), model.contains_key(&key));
                let pair = model.get_key_value(&key).map(|(key, value)| (*key, *value));
                assert_eq!(map.get_key_value(&key), pair);
            }
        }
        assert_eq!((map.len(), map.is_empty()), (model.len(), model.is_empty()));
        match numbers.below(2_000) {
            0 => {
                map.retain(|key, _| key < K::of(keys / 2));
                model.retain(|key, _| *key < K::of(keys / 2));
            }
            1 => {
                let additional = numbers.below(5 * keys) as usize;
                map.reserve(additional);
                assert!(map.capacity() >= map.len() + additional);
            }
            2 | 3 => map.shrink_to_fit(),
            4 => {
                map.clear();
                model.clear();
            }
            5..15 => {
                let mut all: Vec<_> = map.iter().collect();
                let mut expected: Vec<_> = model.iter().map(|(k, v)| (*k, *v)).collect();
                all.sort();
                expected.sort();
                assert_eq!(all, expected, "{round}");
                assert!(map.keys().zip(map.values()).eq(map.iter()));
            }
            _ => {}
        }
    }
}

#[test]
fn operations_do_what_the_standard_librarys_map_does() {
    as_the_model::<u64, u64, GoodHash>(300, rounds(60_000, 300));
    as_the_model::<u64, u64, GoodHash>(8, rounds(20_000, 200));
    as_the_model::<u64, (), GoodHash>(300, rounds(20_000, 200)); // a set
    as_the_model::<u8, u8, GoodHash>(200, rounds(20_000, 200));
    as_the_model::<u32, u32, GoodHash>(3_000, rounds(40_000, 200));
    as_the_model::<char, [u8; 3], GoodHash>(200, rounds(20_000, 200));
    as_the_model::<u64, [u64; 5], GoodHash>(300, rounds(20_000, 200));
}

#[test]
fn operations_do_the_same_where_keys_collide() {
    as_the_model::<u64, u64, PoorHash>(100, rounds(40_000, 80));
    as_the_model::<[u64; 2], u32, PoorHash>(1_000, rounds(20_000, 80));
}

/// A key whose `Eq` would notice if it were torn: its halves are one number.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialOrd)]
#[repr(transparent)]
struct Whole([u64; 2]);

// SAFETY: two numbers.
unsafe impl NoUninit for Whole {}

impl PartialEq for Whole {
    fn eq(&self, other: &Self) -> bool {
        assert_eq!((self.0[0], other.0[0]), (!self.0[1], !other.0[1]), "keys are whole");
        self.0[0] == other.0[0]
    }
}

impl Hash for Whole {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0[0].hash(state);
    }
}

impl Weigh for Whole {}

impl Of for Whole {
    fn of(number: u64) -> Self {
        Self([number, !number])
    }
}

/// Readers, who see whole pairs, and eight keys all the time and no older than before, while others
/// come and go, and the table with them.
fn seen_whole<S: BuildHasher + Default + Send + Sync>(most: u64) {
    let map = CopyMap::<Whole, [u64; 4], S>::with_hasher(S::default());
    (0..8).for_each(|n| _ = map.insert(Whole::of(n), [n; 4]));
    let read = |reader: usize| {
        let (map, mut numbers, mut last) = (&map, Random(reader as u64), [0; 8]);
        move || {
            let n = numbers.below(8);
            let value = map.get(&Whole::of(n)).expect("it is never removed");
            assert_eq!(value, [value[0]; 4], "values are whole");
            assert!(value[0] % 8 == n && value[0] >= last[n as usize]);
            last[n as usize] = value[0];
            if numbers.below(50) == 0 {
                let (mut seen, mut keys) = ([0; 8], BTreeSet::new());
                for (key, value) in map {
                    assert_eq!((key.0[0], value), (!key.0[1], [value[0]; 4]), "pairs are whole");
                    assert!(keys.insert(key.0[0]), "none is seen twice");
                    if key.0[0] < 8 {
                        seen[key.0[0] as usize] += 1;
                    }
                }
                assert_eq!(seen, [1; 8], "each is seen once");
            }
        }
    };
    beside(2, read, || {
        for round in 0..most {
            (0..8).for_each(|n| _ = map.insert(Whole::of(n), [n + 8 * round; 4]));
            let other = 100 + round % 500;
            map.insert(Whole::of(other), [other; 4]);
            map.remove(&Whole::of(other - 20));
            if round % 1_000 == 999 {
                map.retain(|key, _| key.0[0] < 8);
                map.shrink_to_fit();
            }
        }
    });
}

#[test]
fn pairs_are_seen_whole_beside_updates_and_moves() {
    seen_whole::<GoodHash>(rounds(20_000, 100));
    seen_whole::<PoorHash>(rounds(4_000, 40));
}

/// What is kept does not grow with the number of times that a map grows and shrinks.
#[test]
fn memory_is_used_again() {
    let map = CopyMap::<u64, u64, PoorHash>::default();
    let keys = rounds(3_000, 40);
    let cycle = || {
        (0..keys).for_each(|n| _ = map.insert(n, n));
        map.reserve(rounds(20_000, 100));
        map.clear();
        map.shrink_to_fit();
        map.owned()
    };
    cycle();
    let kept = cycle();
    (0..rounds(5, 1)).for_each(|_| assert_eq!(cycle(), kept));
}

#[test]
fn a_reserve_beyond_the_address_space_panics_before_anything_moves() {
    let map = CopyMap::from([(1, 1)]);
    let owned = map.owned();
    panic_of(|| map.reserve(usize::MAX));
    assert_eq!((map.owned(), map.insert(2, 2), map.len()), (owned, None, 2));
}

thread_local!(static PANICS: Cell<bool> = const { Cell::new(false) });

/// `Eq` panics, if asked to; `Hash` of 7 too.
#[derive(Clone, Copy, Debug)]
#[repr(transparent)]
struct Panics(u64);

// SAFETY: a number.
unsafe impl NoUninit for Panics {}

impl PartialEq for Panics {
    fn eq(&self, other: &Self) -> bool {
        assert!(!PANICS.get(), "on purpose");
        self.0 == other.0
    }
}

impl Eq for Panics {}

impl Hash for Panics {
    fn hash<H: Hasher>(&self, state: &mut H) {
        assert!(!PANICS.get() || self.0 != 7, "on purpose");
        self.0.hash(state);
    }
}

#[test]
fn a_panic_in_user_code_leaves_the_map_as_it_was() {
    let map: CopyMap<Panics, u64> = (0..10).map(|n| (Panics(n), n)).collect();
    let panicking = |in_key: bool, f: &dyn Fn()| {
        PANICS.set(in_key);
        panic_of(f);
        PANICS.set(false);
        let mut all: Vec<_> = map.iter().map(|(key, value)| (key.0, value)).collect();
        all.sort();
        assert_eq!(all, (0..10).map(|n| (n, n)).collect::<Vec<_>>());
    };
    panicking(true, &|| _ = map.get(&Panics(3)));
    panicking(true, &|| _ = map.insert(Panics(3), 0));
    panicking(true, &|| _ = map.remove(&Panics(3)));
    panicking(true, &|| map.reserve(1_000));
    panicking(false, &|| _ = map.update(&Panics(3), |_| panic!("on purpose")));
    panicking(false, &|| _ = map.compute::<()>(Panics(3), |_| panic!("on purpose")));
    panicking(false, &|| _ = map.get_or_insert_with(Panics(11), || panic!("on purpose")));
    panicking(false, &|| map.retain(|_, _| panic!("on purpose")));
    // What a panic has left goes on to move.
    let all = rounds(2_000, 100);
    map.reserve(rounds(10_000, 200));
    (10..all).for_each(|n| _ = map.insert(Panics(n), n));
    assert_eq!(map.len(), all as usize);
    assert!((0..all).all(|n| map.get(&Panics(n)) == Some(n)));
}

/// A `Hash` that panics leaves the pairs of a bucket that are of other classes of an iteration.
#[test]
fn no_key_is_seen_twice_after_a_panic_of_hash() {
    let map = CopyMap::<Panics, u64, SlowHash>::default();
    map.reserve(100);
    [3, 7, 11].iter().for_each(|&n| _ = map.insert(Panics(n), n));
    let mut all = map.iter();
    // Now all are in one bucket, and in classes of their own: the panic is that of the first one.
    map.shrink_to_fit();
    PANICS.set(true);
    panic_of(|| all.next());
    PANICS.set(false);
    let mut seen: Vec<_> = all.map(|(_, n)| n).collect();
    seen.sort();
    assert_eq!(seen, [7, 11]);
}

thread_local!(static HASHES_LEFT: Cell<u64> = const { Cell::new(u64::MAX) });

hasher! {
    /// The number itself; some time later.
    Slow: |number| {
        HASHES_LEFT.set(HASHES_LEFT.get().checked_sub(1).expect("it does not end"));
        (0..rounds(100, 1)).for_each(|_| std::hint::spin_loop());
        number
    }
}

type SlowHash = BuildHasherDefault<Slow>;

/// The bucket of that key changes before a mover has the hashes of its keys.
#[test]
fn a_move_ends_beside_updates_of_one_key() {
    let map: CopyMap<u64, u64, SlowHash> = (0..12).map(|n| (n, 0)).collect();
    HASHES_LEFT.set(100_000);
    let update = |_| || _ = map.update(&1, |count| count + 1).expect("it is never removed");
    beside(4, update, || {
        for _ in 0..rounds(5, 1) {
            map.reserve(100);
            assert!(map.capacity() >= 112);
            map.shrink_to_fit();
        }
    });
    assert_eq!(map.len(), 12);
}

/// The first five times `Eq` of this key updates the map that it is in.
#[derive(Clone, Copy, Debug, Eq)]
#[repr(transparent)]
struct Updates(u64);

impl Hash for Updates {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

// SAFETY: a number.
unsafe impl NoUninit for Updates {}

static UPDATED: LazyLock<CopyMap<Updates, u64>> = LazyLock::new(CopyMap::new);

impl PartialEq for Updates {
    fn eq(&self, other: &Self) -> bool {
        static TIMES: AtomicU64 = AtomicU64::new(0);
        if TIMES.fetch_add(1, Relaxed) < 5 {
            UPDATED.update(&Self(1), |count| count + 1);
        }
        self.0 == other.0
    }
}

#[test]
fn user_code_may_use_the_map() {
    let map = CopyMap::from([(1_u64, 0_u64)]);
    // Each call changes what it has been shown, but the last: so the sixth is the one that counts.
    let mut calls = 0;
    let decided = map.compute::<()>(1, |old| {
        calls += 1;
        if calls < 6 {
            map.update(&1, |count| count + 1);
            (100..100 + 10 * calls).for_each(|n| _ = map.insert(n, 0));
            map.shrink_to_fit();
        }
        Operation::Insert(old.unwrap() + 100)
    });
    assert_eq!((calls, decided, map.get(&1)), (6, Ok(Some(5)), Some(105)));

    // A comparison changes the bucket, so each of these begins again, until none does any more.
    UPDATED.insert(Updates(1), 0);
    assert_eq!(UPDATED.update(&Updates(1), |count| count + 100), Some(105));
}

/// Each comparison with this key changes the bucket.
struct Changes<'m> {
    map: &'m CopyMap<u64, u64, OneHash>,
    compared: Cell<u32>,
}

impl Hash for Changes<'_> {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

impl Equivalent<u64> for Changes<'_> {
    fn equivalent(&self, other: &u64) -> bool {
        assert!(self.compared.replace(self.compared.get() + 1) < 1_000, "it does not end");
        self.map.update(other, |count| count + 1);
        false
    }
}

/// One bucket, one tag.
type OneHash = BuildHasherDefault<Constant>;

#[test]
fn a_look_up_of_a_bucket_that_changes_each_time_ends() {
    let map = CopyMap::<u64, u64, OneHash>::default();
    map.insert(1, 0);
    assert_eq!(map.get(&Changes { map: &map, compared: Cell::new(0) }), None);
    assert!(map.get(&1) > Some(1));
}

/// In a thread's last moments, where the library's own thread-locals may be gone, and before it has
/// used the library.
#[test]
fn a_thread_that_ends_uses_a_map() {
    static MAP: LazyLock<CopyMap<u64, u64>> = LazyLock::new(|| (0..100).map(|n| (n, n)).collect());
    threads(3, |_| {
        at_thread_end(|| _ = MAP.update(&1, |n| n + 1));
        assert_eq!(MAP.get(&2), Some(2));
    });
    assert_eq!(MAP.get(&1), Some(4));
}

#[test]
fn a_map_is_a_value_of_other_cells_and_a_static() {
    let cell = Rcu::new(CopyMap::from([(1_u8, 1_u8)]));
    assert!(cell.read().owned() > 0);
    assert_eq!(cell.read().insert(1, 2), Some(1));
    let nothing = CopyMap::from([((), ())]);
    assert_eq!((nothing.remove(&()), nothing.insert((), ())), (Some(()), None));
    assert_eq!(CopyMap::from([(1, 2)]), CopyMap::from([(1, 2)]));
    assert_eq!(format!("{:?}", CopyMap::from([(1, 2)])), "{1: 2}");
}

#[cfg(feature = "serde")]
#[test]
fn a_map_comes_back_from_json() {
    let map: CopyMap<u32, u32> = (0..100).map(|n| (n, n)).collect();
    let json = serde_json::to_string(&map).unwrap();
    assert_eq!(serde_json::from_str::<CopyMap<u32, u32>>(&json).unwrap(), map);
    assert!(serde_json::from_str::<CopyMap<u32, u32>>("[1]").is_err());
}

#[cfg(feature = "rayon")]
#[test]
fn threads_of_a_pool_go_over_a_map_and_extend_it() {
    use rayon::prelude::*;

    let map: CopyMap<u64, u64> = (0..50_000_u64).into_par_iter().map(|n| (n, n)).collect();
    let sum: u64 = (&map).into_par_iter().map(|(_, value)| value).sum();
    assert_eq!((map.len(), sum), (50_000, 50_000 * 49_999 / 2));
    (&map).par_extend((0..50_000_u64).into_par_iter().map(|n| (n, 1)));
    assert_eq!((&map).into_par_iter().map(|(_, value)| value).sum::<u64>(), 50_000);
}
