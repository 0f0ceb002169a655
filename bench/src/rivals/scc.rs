//! scc's two maps: one whose buckets are locked, and one that is read without a lock.

use scc::hash_index::Entry;
use scc::{HashIndex, HashMap};

use super::{Rival, sdd};
use crate::cases::hash::{Hash, Value};
use crate::cases::maps::{Fast, maps};
use crate::shapes::CountedUp;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("scc-hashmap")
        .maps::<HashMap<u64, u64, Fast>, HashMap<u64, u64>, HashMap<String, u64, Fast>>()
        .numbers::<CountedUp<HashMap<u64, [u64; 1], Fast>>>(),
    Rival::new("scc-hashindex")
        .map::<HashIndex<u64, Value, Hash>>()
        .maps::<HashIndex<u64, u64, Fast>, HashIndex<u64, u64>, HashIndex<String, u64, Fast>>()
        .numbers::<CountedUp<HashIndex<u64, [u64; 1], Fast>>>(),
];

maps! {
    HashMap;
    read: |map, key, look| map.read_sync(key, |_, value| look(value));
    insert: |map, key, value| map.upsert_sync(key.clone(), value).is_none();
    update: |map, key, value| map.update_sync(key, |_, slot| *slot = value).is_some();
    remove: |map, key| map.remove_sync(key).is_some();
    replace: |map, key, value| map.update_sync(key, |_, slot| *slot = value);
}

// Without a lock a look-up may miss a key that is replaced meanwhile; under the bucket's it does
// not. `contains` is of keys that no other thread replaces.
maps! {
    HashIndex of Copy values;
    read: |map, key, look| map
        .peek_with(key, |_, value| *value)
        .or_else(|| map.get_sync(key).map(|entry| *entry.get()))
        .as_ref()
        .map(look);
    insert: |map, key, value| match map.entry_sync(key.clone()) {
        Entry::Occupied(mut entry) => {
            entry.update(value);
            false
        }
        Entry::Vacant(entry) => {
            entry.insert_entry(value);
            true
        }
    };
    update: |map, key, value| map.get_sync(key).map(|mut entry| entry.update(value)).is_some();
    remove: |map, key| map.remove_sync(key);
    replace: |map, key, value| map.get_sync(key).map(|mut entry| entry.update(value));
    contains: |map, key| map.peek_with(key, |_, _| ()).is_some();
    flush: |_| sdd::advance();
}
