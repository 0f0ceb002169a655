//! Faults of `collections::IdMap` that a cold reading found.

use crate::common::*;

use quiescence::collections::IdMap;
use quiescence::collections::id_map::{Id, Mark, ReplaceError};

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

/// An iterator that had found nothing more went on with what was inserted afterwards, though it is
/// a `FusedIterator`.
#[test]
fn an_iterator_that_had_ended_went_on() {
    let map = IdMap::new();
    map.insert(0);
    let reader = map.read();
    for mark in [None, Some(Mark::M1)] {
        let mut entries = match mark {
            None => reader.iter(),
            Some(mark) => reader.marked(mark, ..),
        };
        assert_eq!(entries.by_ref().count(), usize::from(mark.is_none()));
        let id = map.insert_at(100_000, 1).unwrap();
        map.set_mark(id, Mark::M1);
        assert_eq!(entries.next(), None);
        assert!(map.remove(id));
    }
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

/// So much it weighs. The first weighing lets something happen.
struct Heavy {
    bytes: usize,
    when_weighed: Mutex<Option<Box<dyn FnOnce() + Send>>>,
}

impl Heavy {
    fn new(bytes: usize) -> Self {
        Self { bytes, when_weighed: Mutex::new(None) }
    }

    fn weigh(&self) -> usize {
        let happens = self.when_weighed.lock().unwrap().take();
        happens.into_iter().for_each(elsewhere);
        self.bytes
    }
}

/// Has `take` take a light value out of a full domain, while another thread replaces it by one that
/// finds no room there.
fn beside_a_replacement(take: impl FnOnce(&IdMap<Heavy, Private>, Id) -> bool) {
    let map = Arc::new(IdMap::with_weight_in(Heavy::weigh, domain_with_limit(1_000, 100_000)));
    let value = Heavy::new(20_000);
    let id = map.insert_with(|id| {
        let map = Arc::downgrade(&map);
        let replace =
            move || assert!(map.upgrade().unwrap().replace(id, Heavy::new(90_000)).is_ok());
        *value.when_weighed.lock().unwrap() = Some(Box::new(replace));
        value
    });
    beside_a_section(map.domain(), |_| {
        assert!(take(&map, id), "at the limit");
        let statistics = map.domain().statistics();
        assert_eq!(statistics.limit_overruns, 0);
        assert!(statistics.bytes_waiting <= 100_000, "{}", statistics.bytes_waiting);
        assert_eq!(map.read().get(id).unwrap().bytes, 90_000);
    });
    map.domain().barrier();
    assert_eq!(map.try_remove(id), Ok(true), "there is room");
}

/// It weighed the value that was there, and took out the one that had replaced it.
#[test]
fn try_remove_went_over_the_limit_by_a_value_that_it_had_not_weighed() {
    beside_a_replacement(|map, id| map.try_remove(id).is_err());
}

/// As above.
#[test]
fn try_replace_went_over_the_limit_by_a_value_that_it_had_not_weighed() {
    beside_a_replacement(|map, id| {
        let refused = map.try_replace(id, Heavy::new(1));
        matches!(refused, Err(ReplaceError::AtLimit(Heavy { bytes: 1, .. })))
    });
}
