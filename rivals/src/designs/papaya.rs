//! papaya: a lock-free map that reclaims with seize.

use papaya::HashMap;

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Hash, Table};

pub(super) const TABLE: Design = Design {
    name: "papaya",
    family: "lock-free map",
    idea: "a lock-free map with one pointer per entry; entries are reclaimed by seize",
    reader_cost: "a locked swap when the guard is left, on the thread's own line",
    limits: "memory is not bounded when a reader stalls; readers run the destructors of updates",
    ours: false,
    make: Ready::<HashMap<Box<[u8]>, Value, Hash>>::boxed,
};

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
