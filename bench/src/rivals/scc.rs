//! scc's two maps: one whose buckets are locked, and one that is read without a lock.

use std::collections::hash_map::RandomState;

use scc::hash_index::Entry;
use scc::{HashIndex, HashMap};

use super::{Rival, sdd};
use crate::cases::hash::{BUCKETS, Hash, Map, Value};
use crate::cases::maps::{self, Hashes, Key, Maps};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("scc-hashmap").maps::<InMap>(),
    Rival::new("scc-hashindex").map::<Scc>().maps::<InIndex>(),
];

/// How often the map is asked again: a replacement takes less time, unless its thread is off its
/// CPU.
const ASKED_AGAIN: u32 = 1 << 30;

struct Scc(HashIndex<u64, Value, Hash>);

impl Map for Scc {
    fn new(keys: impl Iterator<Item = (u64, Value)>) -> Self {
        let map = HashIndex::with_capacity_and_hasher(BUCKETS, Hash::default());
        for (key, value) in keys {
            assert!(map.insert_sync(key, value).is_ok(), "keys are different");
        }
        Self(map)
    }

    /// A search that meets a replacement of the same key may find neither the old value nor the new
    /// one: a user that knows that the key is there asks again.
    #[inline(always)]
    fn search(&self, key: u64) -> Option<u64> {
        let peek = || self.0.peek_with(&key, |_, value| value[0]);
        peek().or_else(|| (0..ASKED_AGAIN).find_map(|_| peek()))
    }

    #[inline(always)]
    fn replace(&self, key: u64, value: Value) {
        match self.0.entry_sync(key) {
            Entry::Occupied(mut entry) => entry.update(value),
            Entry::Vacant(entry) => drop(entry.insert_entry(value)),
        }
    }

    /// Its reclamation is sdd's.
    fn flush(&self) {
        sdd::advance();
    }
}

struct InMap;

impl Maps for InMap {
    type Own = RandomState;
    type Of<K: Key, S: Hashes> = HashMap<K, u64, S>;
}

impl<K: Key, S: Hashes> maps::Map<K> for HashMap<K, u64, S> {
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        Self::with_capacity_and_hasher(entries, S::default())
    }

    fn thread(&self) {}

    #[inline(always)]
    fn get(&self, (): &mut (), key: &K) -> Option<u64> {
        self.read_sync(key, |_, value| *value)
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: u64) -> bool {
        self.upsert_sync(key.clone(), value).is_none()
    }

    #[inline(always)]
    fn replace(&self, thread: &mut (), key: &K, value: u64) {
        self.update(thread, key, value);
    }

    #[inline(always)]
    fn update(&self, (): &mut (), key: &K, value: u64) -> bool {
        self.update_sync(key, |_, slot| *slot = value).is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        self.remove_sync(key).is_some()
    }
}

struct InIndex;

impl Maps for InIndex {
    type Own = RandomState;
    type Of<K: Key, S: Hashes> = HashIndex<K, u64, S>;
}

impl<K: Key, S: Hashes> maps::Map<K> for HashIndex<K, u64, S> {
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        Self::with_capacity_and_hasher(entries, S::default())
    }

    fn thread(&self) {}

    /// As above: it may miss a key that is replaced meanwhile. Under the bucket's lock it does not.
    #[inline(always)]
    fn get(&self, (): &mut (), key: &K) -> Option<u64> {
        let found = self.peek_with(key, |_, value| *value);
        found.or_else(|| self.get_sync(key).map(|entry| *entry.get()))
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: u64) -> bool {
        match self.entry_sync(key.clone()) {
            Entry::Occupied(mut entry) => {
                entry.update(value);
                false
            }
            Entry::Vacant(entry) => {
                entry.insert_entry(value);
                true
            }
        }
    }

    #[inline(always)]
    fn replace(&self, thread: &mut (), key: &K, value: u64) {
        self.update(thread, key, value);
    }

    #[inline(always)]
    fn update(&self, (): &mut (), key: &K, value: u64) -> bool {
        self.get_sync(key).map(|mut entry| entry.update(value)).is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        self.remove_sync(key)
    }

    /// No other thread replaces it.
    #[inline(always)]
    fn contains(&self, (): &mut (), key: &K) -> bool {
        self.peek_with(key, |_, _| ()).is_some()
    }

    fn flush(&self) {
        sdd::advance();
    }
}
