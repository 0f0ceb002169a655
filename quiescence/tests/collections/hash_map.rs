//! `collections::HashMap`: what each operation does, in both forms, alone and beside others.

use crate::common::*;
use std::collections::HashMap as Model;

use quiescence::collections::hash_map::{Compute, Operation};
use quiescence::collections::{HashMap, HashSet};
use quiescence::tag::DomainTag;

use super::keys::{GoodHash, Of};

/// Runs the same random operations on a map and on the standard library's.
fn as_the_model<K: Of, V: Of, S: BuildHasher + Default>(keys: u64, rounds: usize) {
    let map = HashMap::<K, V, S>::with_hasher(S::default());
    let (mut model, mut numbers) = (Model::<K, V>::new(), Random(keys));
    for round in 0..rounds {
        let key = K::of(numbers.below(keys));
        let value = V::of(numbers.below(200));
        let view = map.read();
        match numbers.below(12) {
            0..3 => assert_eq!(
                view.insert(key.clone(), value.clone()).cloned(),
                model.insert(key, value)
            ),
            3 => assert_eq!(
                map.insert(key.clone(), value.clone()),
                model.insert(key, value).is_none()
            ),
            4 | 5 => assert_eq!(view.remove(&key).cloned(), model.remove(&key)),
            6 => assert_eq!(map.remove(&key), model.remove(&key).is_some()),
            7 => {
                let before =
                    model.get_mut(&key).map(|place| std::mem::replace(place, value.clone()));
                let after = view.update(&key, |old| {
                    assert_eq!(Some(old), before.as_ref());
                    value.clone()
                });
                assert_eq!(after, model.get(&key));
            }
            8 => {
                let expected = model.entry(key.clone()).or_insert(value.clone()).clone();
                assert_eq!(*view.get_or_insert_with(key, || value), expected);
            }
            9 => {
                let before = model.get_key_value(&key).map(|(k, v)| (k.clone(), v.clone()));
                let decision = numbers.below(3);
                let done = view.compute(key.clone(), |entry| {
                    assert_eq!(entry, before.as_ref().map(|(k, v)| (k, v)));
                    match decision {
                        0 => Operation::Insert(value.clone()),
                        1 => Operation::Remove,
                        _ => Operation::Abort(round),
                    }
                });
                let old = before.as_ref().map(|(k, v)| (k, v));
                let expected = match (decision, old) {
                    (0, None) => Compute::Inserted(&key, &value),
                    (0, Some(old)) => Compute::Updated { old, new: (&key, &value) },
                    (1, None) => Compute::Absent,
                    (1, Some((k, v))) => Compute::Removed(k, v),
                    _ => Compute::Aborted(round),
                };
                assert_eq!(done, expected);
                match decision {
                    0 => drop(model.insert(key, value)),
                    1 => drop(model.remove(&key)),
                    _ => {}
                }
            }
            _ => {
                assert_eq!(view.get(&key), model.get(&key));
                assert_eq!(view.contains_key(&key), model.contains_key(&key));
                assert_eq!(view.get_key_value(&key), model.get_key_value(&key));
            }
        }
        drop(view);
        assert_eq!(map.len(), model.len());
        match numbers.below(2_000) {
            0 => {
                map.retain(|key, _| key.clone() < K::of(keys / 2));
                model.retain(|key, _| key.clone() < K::of(keys / 2));
            }
            1 => map.reserve(numbers.below(5 * keys) as usize),
            2 | 3 => map.shrink_to_fit(),
            4 => {
                map.clear();
                model.clear();
            }
            5..15 => {
                let mut all: Vec<_> =
                    map.read().iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                let mut expected: Vec<_> =
                    model.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
                all.sort();
                expected.sort();
                assert_eq!(all, expected, "{round}");
            }
            _ => {}
        }
    }
    quiescence::barrier();
}

hasher! {
    /// Few values, so that buckets have nodes with many entries.
    Poor: |number| (number % 7) | ((number % 3) << 60)
}

type PoorHash = BuildHasherDefault<Poor>;

#[test]
fn operations_do_what_the_standard_librarys_map_does() {
    as_the_model::<u64, u64, GoodHash>(300, rounds(60_000, 300));
    as_the_model::<u64, u64, GoodHash>(8, rounds(20_000, 200));
    as_the_model::<u8, u8, GoodHash>(200, rounds(20_000, 200));
    as_the_model::<(u64, u32), u64, GoodHash>(300, rounds(20_000, 200));
    as_the_model::<String, u64, GoodHash>(300, rounds(60_000, 300));
    as_the_model::<u64, String, GoodHash>(8, rounds(20_000, 200));
}

#[test]
fn operations_do_the_same_where_keys_collide() {
    as_the_model::<u64, u64, PoorHash>(100, rounds(40_000, 200));
    as_the_model::<String, String, PoorHash>(100, rounds(40_000, 200));
    as_the_model::<(u64, u32), u64, PoorHash>(1_000, rounds(20_000, 200));
}

#[test]
fn what_was_found_stays_as_it_was_while_the_section_lasts() {
    fn check<K: Of, V: Of>() {
        let of = |key: u64, value: u64| (K::of(key), V::of(value));
        let map: HashMap<K, V> = (0..100).map(|n| of(n, n)).collect();
        let view = map.read();
        let find = |n| view.get_key_value(&K::of(n)).expect("inserted above");
        let found: Vec<_> = (0..100).map(find).collect();
        elsewhere(|| {
            for round in 1..rounds(200, 4) {
                for n in 0..100 {
                    let (key, value) = of(n, n + 100 * round);
                    match round % 4 {
                        0 => _ = map.remove(&key),
                        1 => _ = map.update(&key, |_| value.clone()),
                        _ => _ = map.insert(key, value),
                    }
                }
                map.insert(K::of(1_000 + round), V::of(0));
            }
        });
        for (n, (key, value)) in found.into_iter().enumerate() {
            assert_eq!((key, value), (&K::of(n as u64), &V::of(n as u64)));
        }
    }
    check::<u64, u64>();
    check::<u64, String>();
    check::<String, u64>();
    check::<Box<str>, u64>();
}

/// What a string owns stays where it is while its value is replaced: no entry that waits owns it.
#[test]
fn a_replaced_entry_hands_its_key_on() {
    const LARGE: usize = 1 << 20;
    fn large() -> String {
        let mut key = String::with_capacity(LARGE);
        key.push_str("key");
        key
    }
    fn replace<D: DomainTag>(map: &HashMap<String, u64, GoodHash, D>) {
        for _ in 0..3 {
            assert!(!map.insert(large(), 1));
            assert!(map.update("key", |value| value + 1));
            let view = map.read();
            let computed = view.compute(large(), |_| Operation::<_, ()>::Insert(3));
            assert!(matches!(computed, Compute::Updated { .. }));
        }
    }
    let domain = Domain::new();
    let waiting = || domain.statistics().bytes_waiting as usize;
    let map = HashMap::builder().domain(domain.clone()).build();
    map.insert(large(), 0);
    let view = map.read();
    let find = || view.get_key_value("key").expect("it is never removed");
    let first = find();
    elsewhere(|| replace(&map));
    let last = find();
    assert_eq!((last.0.as_ptr(), *first.1, *last.1), (first.0.as_ptr(), 0, 3));
    assert!((1..LARGE).contains(&waiting()), "{}", waiting());
    elsewhere(|| assert!(map.remove("key")));
    assert!(waiting() >= LARGE, "{}", waiting());
    assert_eq!([first.0, last.0], ["key"; 2]);
    drop(view);
    domain.barrier();
    assert_eq!(waiting(), 0);

    // A function of the user's weighs the old key after the update: each entry has its own.
    let weight = |key: &String, _: &u64| key.capacity();
    let map = HashMap::builder().domain(domain.clone()).build_with_weight(weight);
    map.insert(large(), 0);
    let view = map.read();
    elsewhere(|| replace(&map));
    assert!(waiting() >= LARGE, "{}", waiting());
    drop(view);
    domain.barrier();
}

#[test]
fn every_update_counts_once() {
    const KEYS: u64 = rounds(50, 5);
    fn check<K: Of>() {
        let map = HashMap::<K, u64>::new();
        threads(3, |_| {
            for round in 0..rounds(20_000, 10) {
                let key = K::of(round % KEYS);
                let view = map.read();
                let found = view.get_or_insert_with(key.clone(), || 0);
                let before = *found;
                map.update(&key, |count| count + 1);
                view.compute(key, |entry| match entry {
                    Some((_, count)) => Operation::<_, ()>::Insert(count + 1),
                    None => unreachable!("it was inserted above"),
                });
                assert_eq!(*found, before);
            }
        });
        let view = map.read();
        let all = 6 * rounds(20_000, 10);
        assert_eq!(view.values().sum::<u64>(), all);
        assert!(view.values().all(|count| *count == all / KEYS));
        assert_eq!(map.len(), KEYS as usize);
    }
    check::<u64>();
    check::<String>();
}

#[test]
fn every_value_is_dropped_once() {
    let alive = Arc::new(AtomicUsize::new(0));
    let domain = Domain::new();
    let map = HashMap::<u64, Counted>::builder().domain(domain.clone()).build();
    threads(3, |thread| {
        let mut numbers = Random(thread as u64);
        for _ in 0..rounds(20_000, 10) {
            let key = numbers.below(500);
            match numbers.below(8) {
                0..4 => _ = map.insert(key, Counted::new(0, &alive)),
                4 | 5 => _ = map.remove(&key),
                6 => _ = map.update(&key, |_| Counted::new(0, &alive)),
                _ => _ = map.read().get_or_insert_with(key, || Counted::new(0, &alive)),
            }
        }
        map.shrink_to_fit();
    });
    assert_eq!(settled(&domain, &alive), map.len());
    drop(map);
    assert_eq!(alive.load(SeqCst), 0);
}

#[test]
fn the_limit_holds_and_try_forms_refuse_at_it() {
    let domain = domain_with_limit(100, 1 << 30);
    let map = HashMap::<u64, String>::builder().domain(domain.clone()).build();
    map.insert(1, "first".into());
    let guard = domain.read();
    let mut refused = 0;
    for n in 0..rounds(1_000, 200) {
        if let Err((key, value)) = map.try_insert(1, n.to_string()).map_err(AtLimit::into_inner) {
            assert_eq!((key, value), (1, n.to_string()));
            refused += 1;
        }
    }
    assert!(refused > 0);
    assert!(domain.statistics().callbacks_waiting() <= 100);
    assert_eq!(map.try_remove(&1).map_err(AtLimit::into_inner), Err(()));
    drop(guard);
    domain.barrier();
    assert_eq!(map.try_insert(1, "last".into()), Ok(false));
}

/// In a section of a thread that is over the limit no form panics that begins with `try_`, and each
/// gives back what it was given; and keys that are there are found by those that insert none then.
#[test]
fn try_forms_give_back_what_they_were_given_where_others_panic() {
    let domain = domain_with_limit(100, 1 << 30);
    let map = HashMap::<u64, String, _, _>::new_in(domain.clone());
    let set = HashSet::<String, _, _>::new_in(domain.clone());
    map.extend((0..10).map(|key| (key, key.to_string())));
    set.insert("there".into());
    let value = || "new".to_owned();
    let view = map.read();
    while view.try_insert(0, value()).is_ok() {}
    view.insert(0, value()); // one goes over the limit
    panic_of(|| map.insert(1, value()));
    panic_of(|| map.insert_if_absent(20, value()));
    panic_of(|| view.get_or_insert(20, value()));
    panic_of(|| view.get_or_insert_with(20, || unreachable!("it is refused")));
    panic_of(|| set.insert(value()));

    fn given_back<T, R: Send>(refused: Result<T, AtLimit<R>>) -> R {
        refused.err().expect("it is refused").into_inner()
    }
    let never = |_: &String| -> String { unreachable!("it is refused") };
    assert_eq!(given_back(map.try_insert(1, value())), (1, value()));
    assert_eq!(given_back(view.try_insert(1, value())), (1, value()));
    assert_eq!(given_back(map.try_insert_if_absent(20, value())), (20, value()));
    assert_eq!(given_back(view.try_get_or_insert_with(20, || unreachable!("it is refused"))), 20);
    let refused = view.try_compute(20, |_| -> Operation<String, ()> { unreachable!() });
    assert_eq!(given_back(refused), 20);
    given_back(map.try_update(&1, never));
    given_back(view.try_update(&1, never));
    given_back(map.try_remove(&1));
    given_back(view.try_remove(&1));
    assert_eq!(given_back(set.try_insert(value())), value());
    given_back(set.read().try_remove("there"));

    let one = "1".to_owned();
    assert!(!map.insert_if_absent(1, value()) && !set.insert("there".into()));
    assert_eq!(map.try_insert_if_absent(1, value()), Ok(false));
    assert_eq!(view.get_or_insert(1, value()), &one);
    assert_eq!(view.try_get_or_insert_with(1, || unreachable!("it is there")), Ok(&one));
    assert_eq!(set.try_insert("there".into()), Ok(false));
    assert_eq!(map.len(), 10);

    drop(view);
    domain.barrier();
    let view = map.read();
    assert_eq!((view.try_insert(1, value()), view.get(&1)), (Ok(false), Some(&value())));
    assert_eq!(view.try_update(&1, |old| old.clone() + "er"), Ok(true));
    assert_eq!(view.get(&1), Some(&"newer".to_owned()));
    assert_eq!((view.try_remove(&1), view.get(&1)), (Ok(true), None));
    assert_eq!(view.try_get_or_insert_with(1, value), Ok(&value()));
    assert_eq!(map.try_insert_if_absent(20, value()), Ok(true));
    assert_eq!(set.try_insert(value()), Ok(true));
    assert_eq!(set.read().try_remove("there"), Ok(true));
}

#[test]
fn look_ups_go_by_borrowed_and_by_equivalent_keys() {
    #[derive(Hash)]
    struct Pair<'a>(&'a str, u32);
    impl equivalent::Equivalent<(String, u32)> for Pair<'_> {
        fn equivalent(&self, key: &(String, u32)) -> bool {
            self.0 == key.0 && self.1 == key.1
        }
    }
    let by_name: HashMap<String, u32> = HashMap::from([("a".to_owned(), 1)]);
    assert_eq!(by_name.read().get("a"), Some(&1));
    let by_pair: HashMap<(String, u32), u32> = HashMap::from([(("a".to_owned(), 7), 2)]);
    assert_eq!(by_pair.read().get(&Pair("a", 7)), Some(&2));
    assert!(by_pair.remove(&Pair("a", 7)) && by_pair.is_empty());
}

#[test]
fn a_sleepable_map_is_read_by_other_threads_with_the_guard_of_one() {
    let map = HashMap::<u64, String>::new_in(Srcu::new().domain());
    (0..100).for_each(|n| _ = map.insert(n, n.to_string()));
    let view = map.read();
    let found = view.get(&7).unwrap();
    elsewhere(|| {
        map.clear();
        assert_eq!(found, "7");
        assert!(view.get(&7).is_none());
    });
    assert_eq!(found, "7");
}

#[test]
fn sets_do_what_the_standard_librarys_do() {
    let set: HashSet<u64> = (0..100).collect();
    assert_eq!((set.len(), set.insert(7), set.insert(700)), (101 - 1, false, true));
    assert!(set.remove(&7) && !set.remove(&7) && !set.read().contains(&7));
    set.retain(|n| n % 2 == 0);
    let mut left: Vec<_> = set.read().iter().copied().collect();
    left.sort();
    assert_eq!(left, (0..100).step_by(2).chain([700]).collect::<Vec<_>>());
    let words = HashSet::from(["a".to_owned(), "b".to_owned()]);
    assert_eq!(words.read().get("a").map(String::as_str), Some("a"));
    assert_eq!(words, ["b".to_owned(), "a".to_owned()].into());
    set.clear();
    set.shrink_to_fit();
    assert!(set.is_empty() && format!("{set:?}") == "{}" && set.capacity() < 100);
    Extend::extend(&mut &set, [1, 2]);
    assert_eq!(set.len(), 2);
}

#[test]
fn maps_and_sets_stand_in_the_domain_that_they_are_made_in() {
    quiescence::domain! { struct Zones; }
    let map = HashMap::<u64, u64>::new_in(Domain::of(Zones));
    let set = HashSet::new_in(Domain::of(Zones));
    assert!(map.insert(1, 1) && set.insert(1));
    let domain = Domain::of(Zones);
    let section = domain.read();
    assert!(map.read_in(&section).contains_key(&1) && set.read_in(&section).contains(&1));
    let sleepable = HashSet::new_in(Srcu::new().domain());
    assert!(sleepable.insert("a") && sleepable.read().contains("a"));
}

#[cfg(feature = "serde")]
#[test]
fn maps_and_sets_come_back_from_json() {
    let map: HashMap<String, u32> = (0..100).map(|n| (n.to_string(), n)).collect();
    let json = serde_json::to_string(&map).unwrap();
    assert_eq!(serde_json::from_str::<HashMap<String, u32>>(&json).unwrap(), map);
    assert!(serde_json::from_str::<HashMap<String, u32>>("[1]").is_err());
    let set: HashSet<u32> = (0..100).collect();
    let json = serde_json::to_string(&set).unwrap();
    let back: HashSet<u32> = serde_json::from_str(&json).unwrap();
    assert_eq!(back, set);
}

#[cfg(feature = "rayon")]
#[test]
fn threads_of_a_pool_go_over_a_map_and_extend_it() {
    use rayon::prelude::*;

    let map: HashMap<u64, u64> = (0..50_000_u64).into_par_iter().map(|n| (n, n)).collect();
    let view = map.read();
    let sum: u64 = (&view).into_par_iter().map(|(_, value)| *value).sum();
    assert_eq!((map.len(), sum), (50_000, 50_000 * 49_999 / 2));
    (&map).par_extend((0..50_000_u64).into_par_iter().map(|n| (n, 1)));
    assert_eq!((&view).into_par_iter().map(|(_, value)| *value).sum::<u64>(), 50_000);
    let set: HashSet<u64> = (0..1_000_u64).into_par_iter().collect();
    (&set).par_extend((500..1_500_u64).into_par_iter());
    let seen = set.read();
    assert_eq!((set.len(), (&seen).into_par_iter().sum::<u64>()), (1_500, 1_124_250));
}

#[test]
fn small_types_need_no_alignment_of_their_own() {
    let bytes: HashMap<u8, ()> = (0..=255).map(|n| (n, ())).collect();
    assert!((0..=255).all(|n| bytes.read().contains_key(&n)));
    let wide: HashMap<u128, u128> = (0..100).map(|n| (n, n)).collect();
    assert!((0..100).all(|n| wide.read().get(&n) == Some(&n)));
    let one: HashMap<(), u64> = HashMap::from([((), 7)]);
    assert_eq!(one.read().get(&()), Some(&7));
    let nothing: HashMap<(), ()> = HashMap::from([((), ())]);
    assert!(nothing.remove(&()) && nothing.insert((), ()));
}
