//! dashmap: a map of sharded reader-writer locks, as a crate.

use dashmap::DashMap;

use super::Rival;
use crate::cases::hash;
use crate::cases::maps::{Fast, maps};
use crate::shapes::{CountedUp, Hash, Value};

pub(super) const RIVALS: &[Rival] = &[Rival::new("dashmap")
    .table::<DashMap<Box<[u8]>, Value, Hash>>()
    .ids::<CountedUp<DashMap<u64, Value, Hash>>>()
    .numbers::<CountedUp<DashMap<u64, [u64; 1], Hash>>>()
    .map::<DashMap<u64, hash::Value, hash::Hash>>()
    .maps::<DashMap<u64, u64, Fast>, DashMap<u64, u64>, DashMap<String, u64, Fast>>()];

maps! {
    DashMap;
    read: |map, key, look| map.get(key).map(|value| look(&value));
    insert: |map, key, value| map.insert(key.clone(), value).is_none();
    update: |map, key, value| map.get_mut(key).map(|mut slot| *slot = value).is_some();
    remove: |map, key| map.remove(key).is_some();
    // The old value is freed when the shard's lock is free again.
    replace: |map, key, value| {
        drop(map.get_mut(key).map(|mut slot| std::mem::replace(&mut *slot, value)));
    };
}
