//! dashmap: a map of sharded reader-writer locks, as a crate.

use std::collections::hash_map::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

use super::Rival;
use crate::advise::{Churn, Hash, Ids, Table, Value};
use crate::cases::hash;
use crate::cases::maps::maps;

pub(super) const RIVALS: &[Rival] = &[Rival::new("dashmap")
    .table::<DashMap<Box<[u8]>, Value, Hash>>()
    .ids::<Counted>()
    .map::<DashMap<u64, hash::Value, hash::Hash>>()
    .maps::<Dash>()];

impl Table for DashMap<Box<[u8]>, Value, Hash> {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let map = Self::with_capacity_and_hasher(entries.size_hint().0, Hash::default());
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        self.get(key).map(|value| look(&value))
    }

    #[inline]
    fn update(&self, _thread: &mut (), key: &[u8], value: Value) {
        // Through the slot and not by `insert`, which would need a copy of the key.
        let old = self.get_mut(key).map(|mut slot| std::mem::replace(&mut *slot, value));
        drop(old);
    }
}

impl Churn for DashMap<Box<[u8]>, Value, Hash> {
    #[inline]
    fn put(&self, _thread: &mut (), key: &[u8], value: Value) -> bool {
        self.insert(key.into(), value).is_some()
    }

    #[inline]
    fn remove(&self, _thread: &mut (), key: &[u8]) -> bool {
        self.remove(key).is_some()
    }
}

/// Ids are numbers that are counted up.
#[derive(Debug)]
struct Counted {
    map: DashMap<u64, Value, Hash>,
    next: AtomicU64,
}

impl Ids for Counted {
    fn new() -> Self {
        Self { map: DashMap::default(), next: AtomicU64::new(0) }
    }

    #[inline]
    fn insert(&self, value: Value) -> u64 {
        // Relaxed: it hands out numbers and orders nothing.
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.map.insert(id, value);
        id
    }

    #[inline]
    fn remove(&self, id: u64) -> bool {
        self.map.remove(&id).is_some()
    }

    #[inline]
    fn read<R>(&self, id: u64, look: impl FnOnce(&Value) -> R) -> Option<R> {
        self.map.get(&id).map(|value| look(&value))
    }
}

maps! {
    Dash => DashMap, hashed by RandomState;
    get: |map, key| map.get(key).map(|value| *value);
    insert: |map, key, value| map.insert(key.clone(), value).is_none();
    update: |map, key, value| map.get_mut(key).map(|mut slot| *slot = value).is_some();
    remove: |map, key| map.remove(key).is_some();
}
