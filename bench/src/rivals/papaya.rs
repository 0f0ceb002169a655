//! papaya: a lock-free map that reclaims with seize.

use std::collections::hash_map::RandomState;

use papaya::{Guard, HashMap};

use super::Rival;
use crate::cases::hash;
use crate::cases::maps::maps;
use crate::shapes::{Hash, Value, table};

pub(super) const RIVALS: &[Rival] = &[Rival::new("papaya")
    .table::<HashMap<Box<[u8]>, Value, Hash>>()
    .map::<HashMap<u64, hash::Value, hash::Hash>>()
    .maps::<Papaya>()];

table! {
    HashMap;
    read: |map, key, look| map.pin().get(key).map(look);
    // An entry is key and value in one, so a new value needs a copy of the key.
    put: |map, key, value| map.pin().insert(key.into(), value).is_some();
    remove: |map, key| map.pin().remove(key).is_some();
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
