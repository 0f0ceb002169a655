//! papaya: a lock-free map that reclaims with seize.

use std::collections::hash_map::RandomState;

use papaya::{Guard, HashMap};

use super::Rival;
use crate::advise::{Churn, Hash, Table, Value};
use crate::cases::hash;
use crate::cases::maps::maps;

pub(super) const RIVALS: &[Rival] = &[Rival::new("papaya")
    .table::<HashMap<Box<[u8]>, Value, Hash>>()
    .map::<HashMap<u64, hash::Value, hash::Hash>>()
    .maps::<Papaya>()];

impl Table for HashMap<Box<[u8]>, Value, Hash> {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let map = Self::with_capacity_and_hasher(entries.size_hint().0, Hash::default());
        let pinned = map.pin();
        for (key, value) in entries {
            pinned.insert(key, value);
        }
        drop(pinned);
        map
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        self.pin().get(key).map(look)
    }

    #[inline]
    fn update(&self, _thread: &mut (), key: &[u8], value: Value) {
        // An entry is key and value in one, so a new value needs a copy of the key.
        self.pin().insert(key.into(), value);
    }
}

impl Churn for HashMap<Box<[u8]>, Value, Hash> {
    #[inline]
    fn put(&self, _thread: &mut (), key: &[u8], value: Value) -> bool {
        self.pin().insert(key.into(), value).is_some()
    }

    #[inline]
    fn remove(&self, _thread: &mut (), key: &[u8]) -> bool {
        self.pin().remove(key).is_some()
    }
}

maps! {
    Papaya => HashMap, hashed by RandomState;
    get: |map, key| map.pin().get(key).copied();
    insert: |map, key, value| map.pin().insert(key.clone(), value).is_none();
    update: |map, key, value| map.pin().update(key.clone(), |_| value).is_some();
    remove: |map, key| map.pin().remove(key).is_some();
    replace: |map, key, value| map.pin().insert(key.clone(), value);
    flush: |map| map.guard().flush();
}
