//! What the designs with one lock around everything have in common: all but the lock.

use std::collections::VecDeque;

use slotmap::{DefaultKey, Key, KeyData, SlotMap};

use super::counter::{Counting, Limiting};
use super::ids::Ids;
use super::queue::Queueing;
use super::value::Value;
use crate::locks::{Lock, Locked};

impl<L: Lock<u64>> Counting for Locked<L> {
    const EXACT: bool = true;

    fn new() -> Self {
        Self(L::new(0))
    }

    #[inline]
    fn add(&self) {
        self.0.write(|count| *count += 1);
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.0.read(|count| *count)
    }
}

impl<L: Lock<u64>> Limiting for Locked<L> {
    #[inline]
    fn try_take(&self, limit: u64) -> bool {
        self.0.write(|count| {
            let fits = *count < limit;
            *count += u64::from(fits);
            fits
        })
    }

    #[inline]
    fn give(&self) {
        self.0.write(|count| *count -= 1);
    }
}

impl<L: Lock<VecDeque<Value>>> Queueing for Locked<L> {
    fn new() -> Self {
        Self(L::new(VecDeque::new()))
    }

    #[inline]
    fn push(&self, value: Value) {
        self.0.write(|queue| queue.push_back(value));
    }

    #[inline]
    fn pop(&self) -> Option<Value> {
        self.0.write(VecDeque::pop_front)
    }
}

impl<V: 'static, L: Lock<SlotMap<DefaultKey, V>>> Ids<V> for Locked<L> {
    fn new() -> Self {
        Self(L::new(SlotMap::new()))
    }

    #[inline]
    fn insert(&self, value: V) -> u64 {
        self.0.write(|slots| slots.insert(value)).data().as_ffi()
    }

    #[inline]
    fn remove(&self, id: u64) -> bool {
        // Freed when the lock is free again.
        self.0.write(|slots| slots.remove(KeyData::from_ffi(id).into())).is_some()
    }

    #[inline]
    fn read<R>(&self, id: u64, look: impl FnOnce(&V) -> R) -> Option<R> {
        self.0.read(|slots| slots.get(KeyData::from_ffi(id).into()).map(look))
    }
}
