//! What a map costs where keys collide, and that no update deadlocks with a reader or with a
//! function of the user's. (What waits under churn is bounded under torture.)

use crate::common::*;

use quiescence::collections::HashMap;
use quiescence::collections::hash_map::Operation;

use super::keys::Of;
use crate::common::user_types::Constant;

thread_local! {
    static COMPARED: Cell<u64> = const { Cell::new(0) };
    static HASHED: Cell<u64> = const { Cell::new(0) };
}

/// A key that counts how often it is compared and hashed.
#[derive(Clone, Debug)]
struct Counting(u64);

impl Weigh for Counting {}

impl PartialEq for Counting {
    fn eq(&self, other: &Self) -> bool {
        COMPARED.set(COMPARED.get() + 1);
        self.0 == other.0
    }
}

impl Eq for Counting {}

impl Hash for Counting {
    fn hash<H: Hasher>(&self, state: &mut H) {
        HASHED.set(HASHED.get() + 1);
        self.0.hash(state);
    }
}

/// Comparisons and hashes of a look-up.
fn cost<S: BuildHasher>(map: &HashMap<Counting, u64, S>, key: u64) -> (u64, u64) {
    let (compared, hashed) = (COMPARED.get(), HASHED.get());
    let found = map.read().get(&Counting(key)).copied();
    let cost = (COMPARED.get() - compared, HASHED.get() - hashed);
    assert!(found.is_none_or(|value| value == key));
    cost
}

hasher! {
    /// A number is its own hash.
    Itself: |number| number
}

/// A map of so many keys, each `step` after the one before.
fn map_of<S: BuildHasher + Default>(count: u64, step: u64) -> HashMap<Counting, u64, S> {
    let map = HashMap::with_hasher(S::default());
    for key in (0..count).map(|number| number * step) {
        assert!(map.insert(Counting(key), key));
    }
    map
}

/// The slots of a bucket: keys in them are compared again where there is a node.
const SLOTS: u64 = 6;

/// Look-ups compare each colliding key once, but for some of the first ones, and hash one key.
fn a_look_up_is_linear<S: BuildHasher + Default>(step: u64) {
    for count in [10, 100, 400] {
        let map = map_of::<S>(count, step);
        let costs: Vec<_> = (0..count).map(|number| cost(&map, number * step)).collect();
        assert!(costs.iter().all(|(compared, _)| *compared <= count + SLOTS), "{costs:?}");
        assert!(costs.iter().all(|(_, hashed)| *hashed == 1), "{costs:?}");
        let all: u64 = costs.iter().map(|(compared, _)| compared).sum();
        assert!(all <= count * (count + 1) / 2 + count * SLOTS, "{all} for {count}");
        let (compared, hashed) = cost(&map, count * step);
        assert!((count..=count + SLOTS).contains(&compared), "{compared} for one that is missing");
        assert_eq!(hashed, 1);
        // A table does not grow because of a bucket that is full.
        assert!(map.capacity() as u64 <= 16 * count, "{} for {count}", map.capacity());
    }
}

#[test]
fn look_ups_are_linear_in_colliding_keys() {
    a_look_up_is_linear::<BuildHasherDefault<Constant>>(1);
}

#[test]
fn look_ups_are_linear_in_keys_with_equal_low_bits() {
    a_look_up_is_linear::<BuildHasherDefault<Itself>>(1 << 32);
}

#[test]
fn keys_cannot_be_chosen_so_that_they_collide_under_the_default_hasher() {
    let count = if cfg!(miri) { 200 } else { 20_000 };
    for step in [1, 1 << 32, 1 << 44, 0x1_0001] {
        let map = map_of::<std::hash::RandomState>(count, step);
        let most = (0..2 * count).map(|number| cost(&map, number * step).0).max();
        // Six slots on average eleven sixteenths full, of which one in 250 has the tag by chance.
        assert!(most <= Some(6), "{most:?} comparisons for a look-up, keys {step} apart");
    }
}

#[test]
fn a_thread_updates_what_it_reads_and_has_references_to() {
    let map: HashMap<u64, String> = (0..100).map(|key| (key, key.to_string())).collect();
    let view = map.read();
    let kept: Vec<_> = (0..100).filter_map(|key| view.get(&key)).collect();
    // Under a walk, under a reader, with references out of the map: in all ways there are.
    for (key, value) in &view {
        assert_eq!(*value, key.to_string());
        match key % 5 {
            0 => assert!(map.remove(key)),
            1 => assert!(view.remove(key).is_some()),
            2 => assert!(!map.insert(*key, "new".into())),
            3 => assert!(map.update(key, |old| format!("{old}, new"))),
            _ => assert!(view.insert(*key, "new".into()).is_some()),
        }
    }
    map.retain(|key, _| key % 5 != 2);
    map.reserve(10_000);
    map.clear();
    map.shrink_to_fit();
    assert!(kept.iter().enumerate().all(|(key, value)| **value == key.to_string()));
    drop(view);
    assert!(map.is_empty());
}

#[test]
fn functions_of_the_user_may_use_the_map() {
    let map: HashMap<u64, u64, BuildHasherDefault<Constant>> = HashMap::default();
    map.extend((0..10).map(|key| (key, 0)));
    let view = map.read();
    let found = view.get_or_insert_with(20, || {
        assert!(map.insert(20, 5));
        6
    });
    assert_eq!(*found, 5, "the other one came first");
    // It changes what it decides about, once: so it is called again.
    let mut calls = 0;
    map.retain(|key, _| {
        calls += u64::from(*key == 5);
        if *key == 5 && calls == 1 {
            map.insert(5, 7);
            map.update(&5, |value| value + 1);
            assert!(map.remove(&9) && map.insert(9, 0));
        }
        *key != 5
    });
    assert_eq!((map.read().get(&5), calls), (None, 2));
}

/// What an update has seen of its bucket it uses once the user's function has returned.
#[test]
fn what_a_function_of_the_user_does_to_its_own_key_is_noticed() {
    fn check<K: Of>() {
        let (map, key) = (HashMap::<K, u64>::new(), K::of(3));
        let replaces = || assert!(!map.insert(key.clone(), 7));
        let renews = || assert!(map.remove(&key) && map.insert(key.clone(), 7));
        let removes = || assert!(map.remove(&key));
        let grows = || map.extend((10..rounds(5_000, 50)).map(|other| (K::of(other), other)));
        let acts: [(&dyn Fn(), _, _); 4] = [
            (&replaces, Some(8), 2),
            (&renews, Some(8), 2),
            (&removes, None, 1),
            (&grows, Some(2), 1),
        ];
        for (act, expected, calls) in acts {
            map.insert(key.clone(), 1);
            let mut called = 0;
            let updated = map.update(&key, |value| {
                called += 1;
                if called == 1 {
                    act();
                }
                value + 1
            });
            assert_eq!((map.read().get(&key).copied(), called), (expected, calls));
            assert_eq!(updated, expected.is_some());
        }
        // Absent, and there before it can be inserted.
        for (act, expected, calls) in
            [(&grows as &dyn Fn(), 1, 1), (&|| _ = map.insert(key.clone(), 7), 8, 2)]
        {
            map.clear();
            let (view, mut called) = (map.read(), 0);
            view.compute(key.clone(), |entry| {
                called += 1;
                if called == 1 {
                    act();
                }
                Operation::<_, ()>::Insert(entry.map_or(0, |(_, value)| *value) + 1)
            });
            assert_eq!((view.get(&key).copied(), called), (Some(expected), calls));
        }
    }
    check::<u64>();
    check::<String>();
}
