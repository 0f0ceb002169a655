//! Tests of the last generations of an index, which would take too long to reach from outside.

use super::IdMap;
use super::table::LAST;

#[test]
fn an_index_that_is_worn_is_not_used_again() {
    let map = IdMap::new();
    map.table.wear(0, LAST - 2);
    for generation in [LAST - 1, LAST] {
        let id = map.insert('a');
        assert_eq!((id.index(), id.generation()), (0, generation));
        assert!(map.remove(id));
        assert!(!map.contains(id));
    }
    let next = map.insert('b');
    assert_eq!((next.index(), next.generation()), (1, 1));
    assert_eq!(map.len(), 1);
    // An index that is asked for by its number continues with a generation that no insertion gives.
    map.table.wear(7, u32::MAX);
    assert_eq!(map.insert_at(7, 'c').unwrap().generation(), LAST + 1);
    // Not, if an insertion has given it up.
    assert_eq!(map.insert_at(0, 'd'), Err('d'));
    assert_eq!(map.insert_in(0..1, 'd'), Err('d'));
    assert!(map.remove_at(7) && map.remove_at(1));
    assert_eq!(map.len(), 0);
    assert_eq!(map.insert('e').index(), 1);
}

/// A past error: once `insert_at` had used all generations of an index up, an insertion found the
/// first ones there, and gave their ids again.
#[test]
fn an_insertion_gave_an_id_again_after_insert_at_had_wrapped() {
    let map = IdMap::new();
    let old = map.insert('a');
    assert!(map.remove(old));
    map.table.wear(0, u32::MAX);
    for _ in 0..2 {
        let id = map.insert_at(0, 'b').unwrap();
        assert!(id != old && map.remove(id));
    }
    assert_eq!(map.insert('c').index(), 1);
}

#[test]
fn an_insertion_takes_what_its_thread_has_given_back_if_that_is_free_still() {
    let map = IdMap::new();
    (0..40).for_each(|n| assert_eq!(map.insert(n).index(), n));
    for index in [30, 20, 10] {
        assert!(map.remove_at(index));
    }
    map.insert_at(20, 0).unwrap();
    assert_eq!([0; 3].map(|_| map.insert(0).index()), [10, 30, 40]);
    // More than a thread remembers: none is lost.
    (0..40).for_each(|index| assert!(map.remove_at(index)));
    let mut again: Vec<u32> = (0..40).map(|_| map.insert(0).index()).collect();
    again.sort_unstable();
    assert!(again.into_iter().eq(0..40));
}

#[test]
fn an_insertion_stays_among_low_indexes_whatever_its_thread_has_given_back() {
    let mut map = IdMap::new();
    let far = u32::MAX / 2;
    map.insert_at(far, 0).unwrap();
    assert!(map.remove_at(far));
    assert_eq!(map.insert(0).index(), 0);
    map.insert_at(far, 0).unwrap();
    assert!(map.remove_at(far));
    map = IdMap::new(); // in the same place
    assert_eq!(map.insert(0).index(), 0);
}

#[test]
fn a_lost_id_is_no_entrys() {
    let map = IdMap::<u32>::new();
    let mut lost = None;
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        map.insert_with(|id| {
            lost = Some(id);
            assert_eq!(map.insert_at(id.index(), 0), Err(0), "it is taken");
            assert!(!map.contains(id));
            panic!("on purpose");
        })
    }));
    assert!(panicked.is_err());
    let id = map.insert(1);
    let lost = lost.unwrap();
    assert_eq!(id.index(), lost.index());
    assert_ne!(id, lost);
    assert!(!map.contains(lost));
}
