//! scc's two maps: one whose buckets are locked, and one that is read without a lock.

use std::collections::hash_map::RandomState;

use scc::hash_index::Entry;
use scc::{HashIndex, HashMap};

use super::{Rival, sdd};
use crate::cases::hash::{Hash, Value};
use crate::cases::maps::{Hashes, Key, Map, Maps};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("scc-hashmap").maps::<InMap>(),
    Rival::new("scc-hashindex").map::<HashIndex<u64, Value, Hash>>().maps::<InIndex>(),
];

struct InMap;

impl Maps for InMap {
    type Own = RandomState;
    type Of<K: Key, S: Hashes> = HashMap<K, u64, S>;
}

impl<K: Key, S: Hashes> Map<K> for HashMap<K, u64, S> {
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

impl<K: Key, V: Copy + Send + Sync + 'static, S: Hashes> Map<K, V> for HashIndex<K, V, S> {
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        Self::with_capacity_and_hasher(entries, S::default())
    }

    fn thread(&self) {}

    /// Without a lock it may miss a key that is replaced meanwhile; under the bucket's it does not.
    #[inline(always)]
    fn get(&self, (): &mut (), key: &K) -> Option<V> {
        let found = self.peek_with(key, |_, value| *value);
        found.or_else(|| self.get_sync(key).map(|entry| *entry.get()))
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: V) -> bool {
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
    fn update(&self, (): &mut (), key: &K, value: V) -> bool {
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
