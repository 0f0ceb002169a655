//! One mutex of the standard library around everything.

use std::mem;
use std::sync::{Mutex, PoisonError};

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Config, Index, Table, Whole, hash};

pub(super) const TABLE: Design = Design { make: Ready::<Mutex<Index<Value>>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "std-mutex",
    family: "lock",
    idea: "one lock for all, readers included",
    reader_cost: "two locked instructions, on a line that every reader writes; readers also wait for each other",
    limits: "many readers: they take turns, and the lock's line travels between their CPUs",
    ours: false,
    make: Ready::<Whole<Mutex<Value>>>::boxed,
};

impl Config for Mutex<Value> {
    type Domain = ();
    type Thread<'a> = ();

    fn new(value: Value) -> Self {
        Self::new(value)
    }

    fn thread(_domain: &()) {}

    #[inline]
    fn read<R>(&self, _domain: &(), _thread: &mut (), look: impl FnOnce(&Value) -> R) -> R {
        look(&self.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut (), value: Value) {
        let old = mem::replace(&mut *self.lock().unwrap_or_else(PoisonError::into_inner), value);
        // The lock is free again: nobody waits for the allocator.
        drop(old);
    }
}

impl Table for Mutex<Index<Value>> {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        Self::new(Index::new(entries))
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        // Hashed before the lock is taken: the section is as short as it can be.
        let hash = hash(key);
        self.lock().unwrap_or_else(PoisonError::into_inner).get(hash, key).map(look)
    }

    #[inline]
    fn update(&self, _thread: &mut (), key: &[u8], value: Value) {
        let hash = hash(key);
        let old = self
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(hash, key)
            .map(|slot| mem::replace(slot, value));
        drop(old);
    }
}
