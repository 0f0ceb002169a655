//! scc's read-optimised map.

use scc::HashIndex;
use scc::hash_index::Entry;

use super::{Rival, sdd};
use crate::cases::hash::{BUCKETS, Hash, Map, Value};

pub(super) const RIVALS: &[Rival] = &[Rival::new("scc-hashindex").map::<Scc>()];

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
