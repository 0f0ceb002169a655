//! dashmap: a map of sharded reader-writer locks, as a crate.

use dashmap::DashMap;

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Hash, Table};

pub(super) const TABLE: Design = Design {
    name: "dashmap",
    family: "sharded lock",
    idea: "a map whose keys are spread over reader-writer locks of its own, four for each CPU",
    reader_cost: "two locked instructions, on a line that only readers of the same shard write",
    limits: "a few hot keys; holding a reference while touching the map again deadlocks",
    ours: false,
    make: Ready::<DashMap<Box<[u8]>, Value, Hash>>::boxed,
};

impl Table for DashMap<Box<[u8]>, Value, Hash> {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let map = Self::with_capacity_and_hasher(entries.size_hint().0, Hash::default());
        for (key, value) in entries {
            map.insert(key, value);
        }
        map
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        self.get(key).map(|value| look(&value))
    }

    #[inline]
    fn update(&self, _thread: &mut (), key: &[u8], value: Value) {
        // Through the slot and not by `insert`, which would need a copy of the key.
        let old = self.get_mut(key).map(|mut slot| std::mem::replace(&mut *slot, value));
        drop(old);
    }
}
