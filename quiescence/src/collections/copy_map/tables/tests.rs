//! Moves and nodes, as `Tables` has them.

use std::cell::Cell;

use super::*;
use crate::common::random::Random;
use crate::common::threads::{elsewhere, panic_of, threads};

type Map = Tables<u64, u64>;

/// The tag of small keys is one.
fn hash_of(key: &u64) -> u64 {
    *key
}

fn compute(map: &Map, key: u64, decide: impl FnMut(Option<u64>) -> Operation<u64, ()>) {
    let _decided = map.change(hash_of(&key), Some(key), |other| *other == key, hash_of, decide);
}

fn insert(map: &Map, key: u64) {
    compute(map, key, |_| Operation::Insert(key));
}

fn remove(map: &Map, key: u64) {
    compute(map, key, |_| Operation::Remove);
}

fn get(map: &Map, key: u64) -> Option<u64> {
    map.get(hash_of(&key), |other| *other == key).map(|(_, value)| value)
}

fn resize(map: &Map, buckets: usize) {
    map.resize(|now| (now != buckets).then_some(buckets), hash_of);
}

/// Nodes in chains; and each other one is spare.
fn nodes(map: &Map) -> usize {
    let root = map.root();
    let chains = (0..root.buckets()).map(|at| Map::bucket(root, at).nodes().count()).sum();
    let nodes = sync::lock(&map.nodes);
    assert_eq!(nodes.all.len(), nodes.spare.len() + chains, "no node is lost");
    chains
}

#[test]
fn a_unit_has_two_buckets_of_a_table_at_most() {
    let map = Map::new(0);
    (0..10).for_each(|key| insert(&map, key));
    [64, 8].iter().for_each(|&buckets| resize(&map, buckets));
    let mut sizes: Vec<_> = sync::lock(&map.tables).iter().map(|is| is.buckets()).collect();
    sizes.sort_unstable();
    assert_eq!(sizes, [4, 8, 16, 32, 64]);
    assert!((0..10).all(|key| get(&map, key) == Some(key)));
}

/// A thread that loses its CPU while it has a bucket locked holds up that bucket.
#[test]
fn an_update_does_not_wait_for_another_bucket_that_is_to_move() {
    let map = Map::new(0);
    (0..4).for_each(|key| insert(&map, key));
    map.begin_move(map.root(), 8);
    let held = Map::bucket(map.root(), 0);
    let state = held.state();
    assert!(held.lock(state));
    elsewhere(|| (0..10).for_each(|_| insert(&map, 1)));
    held.release(state);
    map.end_moves(hash_of);
    assert!((0..4).all(|key| get(&map, key) == Some(key)));
}

#[test]
fn an_update_that_moves_buckets_without_overflow_takes_no_lock_of_the_map() {
    let map = Map::new(0);
    map.begin_move(map.root(), 8);
    let nodes = sync::lock(&map.nodes);
    insert(&map, 1);
    drop(nodes);
    map.end_moves(hash_of);
    assert_eq!(get(&map, 1), Some(1));
}

#[test]
fn a_spare_node_comes_back_from_an_update_that_does_not_need_it() {
    let map = Map::new(0);
    let crowd = |keys: u64| (0..keys).for_each(|n| insert(&map, 1024 * n));
    crowd(6); // of one bucket, which is full
    assert_eq!(nodes(&map), 0);
    // Each has a node when it finds the bucket changed, and decides otherwise then.
    let mut calls = 0;
    compute(&map, 1 << 20, |_| {
        calls += 1;
        crowd(1);
        if calls == 1 { Operation::Insert(0) } else { Operation::Abort(()) }
    });
    nodes(&map);
    let panics = |_| {
        calls += 1;
        crowd(1);
        assert!(calls < 4, "on purpose");
        Operation::Insert(0)
    };
    panic_of(|| compute(&map, 1 << 20, panics));
    nodes(&map);
}

#[test]
fn nodes_of_what_has_moved_come_back_from_a_mover_that_panics() {
    let map = Map::new(Map::most(4));
    (0..12).for_each(|n| insert(&map, 4 * n));
    insert(&map, 1);
    assert!(nodes(&map) > 0);
    map.begin_move(map.root(), 8);
    let panics = |key: &u64| if *key % 4 == 1 { panic!("on purpose") } else { *key };
    let decide = |_| Operation::<u64>::Insert(0);
    panic_of(|| map.change(0, Some(0), |other| *other == 0, panics, decide));
    map.end_moves(hash_of);
    nodes(&map);
}

#[test]
fn nodes_come_back_from_threads_that_race() {
    let map = Map::new(0);
    threads(3, |thread| {
        for n in 0..if cfg!(miri) { 100 } else { 20_000 } {
            let key = 1024 * ((n + thread as u64) % 12);
            if n % 2 == 0 { insert(&map, key) } else { remove(&map, key) }
        }
    });
    map.end_moves(hash_of);
    nodes(&map);
    (0..12).for_each(|n| remove(&map, 1024 * n));
    assert_eq!(nodes(&map), 0);
}

/// As many pairs all the time, and buckets get more than they have room for, and fewer again.
#[test]
fn chains_get_shorter_without_a_move() {
    let map = Map::new(Map::most(16));
    // No multiplication alone: it would fill all buckets alike.
    let key = |n| Random(n).next();
    let (all, rounds) = (Map::most(16) as u64, if cfg!(miri) { 500 } else { 10_000 });
    (0..all).for_each(|n| insert(&map, key(n)));
    for n in all..rounds {
        remove(&map, key(n - all));
        insert(&map, key(n));
        assert!(get(&map, key(n - 1)).is_some());
    }
    assert_eq!(map.buckets(), 16);
    assert!(nodes(&map) < 8 && !sync::lock(&map.nodes).all.is_empty());
    (rounds - all..rounds).for_each(|n| remove(&map, key(n)));
    assert_eq!((nodes(&map), map.len()), (0, 0));
}

/// As updates of one key do, of which one always comes between a mover's copy and its lock.
#[test]
fn a_move_ends_that_finds_another_value_each_time() {
    let map = Map::new(0);
    (0..4).for_each(|key| insert(&map, key));
    let root = map.root();
    let (hashed, value) = (Cell::new(0), Cell::new(0));
    let updates = |key: &u64| {
        assert!(hashed.replace(hashed.get() + 1) < 1_000, "it does not end");
        let bucket = Map::bucket(root, 0);
        let state = bucket.state();
        if state & HERE != 0 {
            let seen = bucket.search(state, tags::of_hash(0), |key| *key == 0).unwrap();
            let ((part, slot), _) = seen.found.unwrap();
            assert!(bucket.lock(state));
            value.set(value.get() + 1);
            part.store(slot, (0, value.get()));
            bucket.release(state + ONE);
        }
        hash_of(key)
    };
    map.resize(|now| (now < 8).then_some(8), updates);
    assert_eq!(get(&map, 0), Some(value.get()));
    assert!(value.get() > 0 && (1..4).all(|key| get(&map, key) == Some(key)));
}
