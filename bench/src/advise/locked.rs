//! What the designs with one lock around everything have in common: all but the lock.

use std::mem;

use super::value::Value;
use super::workload::{Config, Index, Table, hash};

/// A lock around a value. A mutex reads as it writes: alone.
pub(crate) trait Lock<T>: Send + Sync {
    /// An open lock.
    fn new(value: T) -> Self;

    /// Looks at the value under the lock.
    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R;

    /// Changes the value under the lock.
    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R;
}

/// Everything under one lock.
#[derive(Debug)]
pub(crate) struct Locked<L>(L);

impl<L: Lock<Value> + 'static> Config for Locked<L> {
    type Domain = ();
    type Thread<'a> = ();

    fn domain() {}

    fn new(_domain: &(), value: Value) -> Self {
        Self(L::new(value))
    }

    fn thread(_domain: &()) {}

    #[inline]
    fn read<R>(&self, _domain: &(), _thread: &mut (), look: impl FnOnce(&Value) -> R) -> R {
        self.0.read(look)
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut (), value: Value) {
        // Dropped when the lock is free again: no thread waits for the allocator.
        drop(self.0.write(|slot| mem::replace(slot, value)));
    }
}

impl<L: Lock<Index<Value>> + 'static> Table for Locked<L> {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        Self(L::new(Index::new(entries)))
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        // Hashed before the lock is taken: the section is as short as it can be.
        let hash = hash(key);
        self.0.read(|index| index.get(hash, key).map(look))
    }

    #[inline]
    fn update(&self, _thread: &mut (), key: &[u8], value: Value) {
        let hash = hash(key);
        drop(self.0.write(|index| index.get_mut(hash, key).map(|slot| mem::replace(slot, value))));
    }
}
