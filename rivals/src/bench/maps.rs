//! The maps of other crates, as their users would use them: a guard for each operation.

use dashmap::DashMap;
use papaya::Guard;
use scc::HashIndex;
use scc::hash_index::Entry;

use super::schemes::{Scheme, sdd::Sdd};
use super::table::{BUCKETS, Hash, Map, Value};

/// How often scc's map is asked again: a replacement takes less time, unless its thread is off its CPU.
const ASKED_AGAIN: u32 = 1 << 30;

/// scc's read-optimised map.
pub(super) struct Scc(HashIndex<u64, Value, Hash>);

impl Map for Scc {
    fn new(keys: impl Iterator<Item = (u64, Value)>) -> Self {
        let map = HashIndex::with_capacity_and_hasher(BUCKETS, Hash::default());
        for (key, value) in keys {
            assert!(map.insert_sync(key, value).is_ok(), "keys are different");
        }
        Self(map)
    }

    /// A search that meets a replacement of the same key may find neither the old value nor the new
    /// one: who knows that the key is there asks again.
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
        Sdd.flush();
    }
}

/// papaya, whose reclamation is seize's.
pub(super) struct Papaya(papaya::HashMap<u64, Value, Hash>);

impl Map for Papaya {
    fn new(keys: impl Iterator<Item = (u64, Value)>) -> Self {
        let map = papaya::HashMap::with_capacity_and_hasher(BUCKETS, Hash::default());
        for (key, value) in keys {
            map.pin().insert(key, value);
        }
        Self(map)
    }

    #[inline(always)]
    fn search(&self, key: u64) -> Option<u64> {
        self.0.pin().get(&key).map(|value| value[0])
    }

    #[inline(always)]
    fn replace(&self, key: u64, value: Value) {
        self.0.pin().insert(key, value);
    }

    fn flush(&self) {
        self.0.guard().flush();
    }
}

/// dashmap: a lock for each of several shards.
pub(super) struct Dash(DashMap<u64, Value, Hash>);

impl Map for Dash {
    fn new(keys: impl Iterator<Item = (u64, Value)>) -> Self {
        let map = DashMap::with_capacity_and_hasher(BUCKETS, Hash::default());
        for (key, value) in keys {
            map.insert(key, value);
        }
        Self(map)
    }

    #[inline(always)]
    fn search(&self, key: u64) -> Option<u64> {
        self.0.get(&key).map(|value| value[0])
    }

    #[inline(always)]
    fn replace(&self, key: u64, value: Value) {
        self.0.insert(key, value);
    }
}
