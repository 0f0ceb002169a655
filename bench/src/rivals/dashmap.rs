//! dashmap: a map of sharded reader-writer locks, as a crate.

use std::collections::hash_map::RandomState;
use std::sync::atomic::{AtomicU64, Ordering};

use dashmap::DashMap;

use super::Rival;
use crate::cases::hash;
use crate::cases::maps::maps;
use crate::shapes::{Hash, Ids, Look, Value};

pub(super) const RIVALS: &[Rival] = &[Rival::new("dashmap")
    .table::<DashMap<Box<[u8]>, Value, Hash>>()
    .ids::<Counted>()
    .map::<DashMap<u64, hash::Value, hash::Hash>>()
    .maps::<Dash>()];

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
    fn read<R>(&self, id: u64, look: impl Look<R>) -> Option<R> {
        self.map.get(&id).map(|value| look(&value))
    }
}

maps! {
    Dash => DashMap, hashed by RandomState;
    read: |map, key, look| map.get(key).map(|value| look(&value));
    insert: |map, key, value| map.insert(key.clone(), value).is_none();
    update: |map, key, value| map.get_mut(key).map(|mut slot| *slot = value).is_some();
    remove: |map, key| map.remove(key).is_some();
    // The old value is freed when the shard's lock is free again.
    replace: |map, key, value| {
        drop(map.get_mut(key).map(|mut slot| std::mem::replace(&mut *slot, value)));
    };
}
