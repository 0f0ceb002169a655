//! Tables of one or two buckets, of two slots each, under loom. A pair has two words: a key, and a
//! value that names its key, so that torn pairs are noticed.

use std::cell::Cell;

use loom::sync::Arc;

use super::tables::Tables;
use crate::collections::hash_map::Operation;
use crate::loom_tests::{self, bounded};

type Map = Tables<u64, u64>;

/// Keys of one bucket or two, with one tag for all.
fn hash_of(key: &u64) -> u64 {
    0x55 << 56 | key % 2
}

/// Whether a value is one of the key's.
fn is_of(key: u64, value: u64) -> bool {
    value % 10 == key
}

fn get(map: &Map, key: u64) -> Option<u64> {
    let value = map.get(hash_of(&key), |other| *other == key).map(|(_, value)| value);
    assert!(value.is_none_or(|value| is_of(key, value)), "{key}: {value:?}");
    value
}

fn change(map: &Map, key: u64, new: impl Fn(Option<u64>) -> Operation<u64>) -> Option<u64> {
    let old = map.change(hash_of(&key), Some(key), |other| *other == key, hash_of, new);
    old.unwrap().map(|(_, value)| value)
}

fn insert(map: &Map, key: u64, value: u64) {
    change(map, key, |_| Operation::Insert(value));
}

fn remove(map: &Map, key: u64) {
    change(map, key, |_| Operation::Remove);
}

/// Moves all pairs to a table of so many buckets, or to the end of the move that goes on.
fn resize(map: &Map, buckets: usize) {
    map.resize(|now| (now != buckets).then_some(buckets), hash_of);
}

/// Has one thread update a map with room for so many pairs, and some pairs in it, and another one
/// do something beside it. (In this order: what the first one has stored last is where loom begins
/// to interleave the loads of the other.)
fn beside(
    preemptions: usize,
    (room, keys): (usize, &'static [u64]),
    update: impl Fn(&Map) + Send + Sync + Copy + 'static,
    other: impl Fn(&Map) + Send + Sync + Copy + 'static,
) {
    bounded(preemptions, move || {
        let map = Arc::new(Map::new(room));
        keys.iter().for_each(|&key| insert(&map, key, key));
        loom_tests::beside(&map, other, update);
        map.end_moves(hash_of);
        let (mut all, mut pairs) = (Vec::new(), Vec::new());
        for hash in 0..map.buckets() as u64 {
            map.copy(hash, &mut pairs);
            all.append(&mut pairs);
        }
        all.sort();
        assert!(all.len() == map.len() && all.is_sorted_by(|a, b| a.0 < b.0), "{all:?}");
    });
}

/// A key that is replaced is found, and never with an older value than before.
#[test]
fn a_value_is_whole_and_not_older_than_before() {
    beside(
        2,
        (1, &[0]),
        |map| insert(map, 0, 10),
        |map| {
            let look = || get(map, 0).expect("it is never removed");
            let first = look();
            assert!(look() >= first);
        },
    );
}

/// A slot gets another key.
#[test]
fn a_pair_is_of_one_key() {
    beside(
        2,
        (1, &[0]),
        |map| {
            remove(map, 0);
            insert(map, 2, 2);
        },
        |map| _ = get(map, 0),
    );
}

/// Keys come into a node.
#[test]
fn a_key_in_a_node_is_found() {
    beside(
        2,
        (5, &[0, 2]),
        |map| [4, 6].iter().for_each(|&key| insert(map, key, key)),
        |map| {
            let later = get(map, 6).is_some();
            assert!(!later || get(map, 4).is_some());
        },
    );
}

/// It moves to the front of its chain, and the memory of its node to another chain.
#[test]
fn a_key_is_found_while_its_chain_gets_shorter() {
    beside(
        2,
        (5, &[0, 2, 4, 1, 3]),
        |map| {
            remove(map, 0);
            insert(map, 5, 5);
        },
        |map| assert!(get(map, 4).is_some(), "it is never removed"),
    );
}

/// The search and the copy without the lock find the bucket changed.
#[test]
fn a_look_up_of_a_bucket_that_changes_each_time_ends() {
    beside(
        3,
        (1, &[0]),
        |map| [10, 20].iter().for_each(|&value| insert(map, 0, value)),
        |map| assert!(get(map, 0).is_some(), "it is never removed"),
    );
}

/// Both have it grow: one ends the move, and the other finds either that or the root of before.
#[test]
fn a_move_begins_at_the_root() {
    beside(2, (1, &[0]), |map| resize(map, 2), |map| resize(map, 2));
}

/// Two movers: who finds the root of after a move finds there at once what both have moved.
#[test]
fn a_move_that_has_ended_is_seen_whole() {
    bounded(2, || {
        let map = Arc::new(Map::new(Map::most(2)));
        map.begin(4);
        let move_one = |map: &Map| {
            map.move_one(hash_of);
            assert_ne!(map.are_here(4), Some(false));
        };
        loom_tests::beside(&map, move_one, move_one);
        assert_eq!(map.are_here(4), Some(true));
    });
}

#[test]
fn no_update_is_lost() {
    bounded(2, || {
        let map = Arc::new(Map::new(1));
        insert(&map, 0, 0);
        let add = |map: &Map| _ = change(map, 0, |old| Operation::Insert(old.unwrap() + 10));
        loom_tests::beside(&map, add, add);
        assert_eq!(get(&map, 0), Some(20));
    });
}

#[test]
fn two_updaters_of_a_key_leave_one_pair() {
    beside(2, (1, &[]), |map| insert(map, 0, 10), |map| insert(map, 0, 20));
}

/// A key is found while its bucket moves to a table of another size.
fn found_while_moved(room: usize, buckets: usize) {
    beside(
        2,
        (room, &[0]),
        move |map| resize(map, buckets),
        |map| assert!(get(map, 0).is_some(), "it is never removed"),
    );
}

#[test]
fn a_key_is_found_while_a_table_grows() {
    found_while_moved(1, 2);
}

#[test]
fn a_key_is_found_while_a_table_shrinks() {
    found_while_moved(2, 1);
}

/// So a reader that has looked before its bucket moved away and came back knows that it did. (All
/// interleavings of the two would be too many.)
#[test]
fn no_bucket_has_a_state_twice() {
    bounded(0, || {
        let map = Map::new(1);
        let mut last = 0;
        for _ in 0..3 {
            insert(&map, 0, 0);
            let state = map.copy(0, &mut Vec::new()).state;
            assert!(state > last, "{state} after {last}");
            last = state;
            [2, 1].iter().for_each(|&buckets| resize(&map, buckets));
        }
    });
}

#[test]
fn an_updater_follows_a_bucket_that_moves() {
    beside(
        2,
        (1, &[0]),
        |map| resize(map, 2),
        |map| {
            insert(map, 0, 10);
            assert_eq!(get(map, 0), Some(10));
        },
    );
}

/// One has seen a move begin; all pairs move there and back, before it has moved any, as its
/// `Hash` says. It moves nothing then, or its pairs would be where no one looks for them.
#[test]
fn a_mover_that_comes_late_moves_nothing() {
    bounded(0, || {
        let map = Map::new(Map::most(8));
        insert(&map, 0, 0);
        let is_first = Cell::new(true);
        let late = |key: &u64| {
            if is_first.replace(false) {
                [16, 8].iter().for_each(|&buckets| resize(&map, buckets));
            }
            hash_of(key)
        };
        map.begin(16);
        let decide = |_| Operation::<u64>::Insert(10);
        map.change(hash_of(&0), Some(0), |other| *other == 0, late, decide).unwrap();
        assert!(!is_first.get());
        assert_eq!(get(&map, 0), Some(10));
    });
}

/// Each of two updaters moves what it finds, and inserts a key; none is lost or doubled.
#[test]
fn two_updaters_insert_while_a_table_grows() {
    beside(
        2,
        (1, &[0]),
        |map| {
            map.begin(2);
            insert(map, 1, 1);
        },
        |map| insert(map, 2, 2),
    );
}

/// What is removed from a bucket that moves does not come back.
#[test]
fn a_key_is_removed_while_a_table_grows() {
    beside(
        2,
        (1, &[0, 2]),
        |map| resize(map, 2),
        |map| {
            remove(map, 0);
            assert_eq!(get(map, 0), None);
            assert!(get(map, 2).is_some(), "it is never removed");
        },
    );
}
