//! Faults of `collections::IdMap` that a cold reading found.

use crate::common::*;

use quiescence::collections::IdMap;

/// It removed by id, and a value that replaces another has its id: a session that was renewed
/// meanwhile vanished with the one that had expired.
#[test]
fn retain_removed_a_value_that_it_was_not_asked_about() {
    let map = IdMap::new();
    let [renewed, expired] = [1, 1].map(|value| map.insert(value));
    let mut asked = Vec::new();
    map.retain(|id, value| {
        asked.push((id, *value));
        if id == renewed && *value == 1 {
            map.replace(id, 2).unwrap();
        }
        *value != 1
    });
    assert_eq!(asked, [(renewed, 1), (renewed, 2), (expired, 1)]);
    let reader = map.read();
    assert_eq!((reader.get(renewed), reader.get(expired)), (Some(&2), None));
}

/// It asked about each new entry, which an insertion puts at the index given back last.
#[test]
fn retain_did_not_end_if_its_function_removed_and_inserted_anew() {
    let map = IdMap::new();
    let old = map.insert(0);
    let mut calls = 0;
    map.retain(|id, value| {
        calls += 1;
        assert_eq!((id, calls), (old, 1), "asked about an entry of its own");
        assert!(map.remove(id));
        assert_eq!(map.insert(value + 1).index(), id.index());
        false
    });
    assert_eq!((calls, map.len()), (1, 1));
}

/// It looked for the caller's sections only before it called the function: the entry went over the
/// limit that the function had exceeded already.
#[test]
fn retain_went_over_the_limit_twice_in_a_section_that_its_function_began() {
    let map = IdMap::new_in(domain_with_limit(2, u64::MAX));
    let ids: Vec<_> = (0..20).map(|value| map.insert(value)).collect();
    let (mut section, mut left) = (None, None);
    panic_of(|| {
        map.retain(|_, _| {
            section = Some(map.domain().read());
            panic_of(|| ids.iter().rev().for_each(|id| assert!(map.remove(*id)))); // one is over
            left.get_or_insert_with(|| map.len());
            false
        });
    });
    assert!(section.is_some());
    assert_eq!(Some(map.len()), left, "refused, as any removal in the section");
}

/// It leaked the values after the first.
#[test]
fn a_panic_in_a_drop_leaked_the_rest_of_the_map() {
    static DROPS: AtomicUsize = AtomicUsize::new(0);
    let map = IdMap::new();
    for _ in 0..3 {
        map.insert(OnDrop(|| assert_ne!(DROPS.fetch_add(1, SeqCst), 0, "the first panics")));
    }
    panic_of(|| drop(map));
    assert_eq!(DROPS.load(SeqCst), 3);
}
