//! papaya: a lock-free map that reclaims with seize.

use papaya::{Guard, HashMap};

use super::Rival;
use crate::cases::hash;
use crate::cases::maps::{Fast, maps};
use crate::shapes::{self, CountedUp};

pub(super) const RIVALS: &[Rival] = &[Rival::new("papaya")
    .table::<HashMap<Box<[u8]>, shapes::Value, shapes::Hash>>()
    .map::<HashMap<u64, hash::Value, hash::Hash>>()
    .maps::<HashMap<u64, u64, Fast>, HashMap<u64, u64>, HashMap<String, u64, Fast>>()
    .numbers::<CountedUp<HashMap<u64, [u64; 1], Fast>>>()];

maps! {
    HashMap;
    read: |map, key, look| map.pin().get(key).map(look);
    // An entry is key and value in one, so a new value needs a copy of the key.
    insert: |map, key, value| map.pin().insert(key.clone(), value).is_none();
    update: |map, key, value| map.pin().update(key.clone(), |_| value).is_some();
    remove: |map, key| map.pin().remove(key).is_some();
    flush: |map| map.guard().flush();
}
