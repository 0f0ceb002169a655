//! The standard library's map under one lock, of whichever kind.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::mem;

use super::{Hashes, Key, Map, Maps};
use crate::locks::{Boxed, Lock, Locks};

impl<L: Locks> Maps for Boxed<L> {
    type Own = RandomState;
    type Of<K: Key, S: Hashes> = LockedMap<K, S, L>;
}

/// A map and its lock.
pub(crate) struct LockedMap<K: Key, S: Hashes, L: Locks> {
    lock: L::Of<HashMap<K, u64, S>>,
}

impl<K: Key, S: Hashes, L: Locks> Map<K> for LockedMap<K, S, L> {
    type Thread = ();

    fn with_capacity(entries: usize) -> Self {
        let map = HashMap::with_capacity_and_hasher(entries, S::default());
        Self { lock: Lock::new(map) }
    }

    fn thread(&self) {}

    #[inline(always)]
    fn get(&self, (): &mut (), key: &K) -> Option<u64> {
        self.lock.read(|map| map.get(key).copied())
    }

    #[inline(always)]
    fn insert(&self, (): &mut (), key: &K, value: u64) -> bool {
        // Allocated, and freed, when the lock is free: no thread waits for the allocator.
        let key = key.clone();
        self.lock.write(|map| map.insert(key, value)).is_none()
    }

    #[inline(always)]
    fn update(&self, (): &mut (), key: &K, value: u64) -> bool {
        let replace = |slot: &mut u64| mem::replace(slot, value);
        self.lock.write(|map| map.get_mut(key).map(replace)).is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &K) -> bool {
        self.lock.write(|map| map.remove_entry(key)).is_some()
    }
}
