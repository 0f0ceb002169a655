//! One reader-writer lock of the standard library around everything.

use std::sync::{PoisonError, RwLock};

use super::Design;
use super::locked::{Lock, Locked};
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Index, Whole};

pub(super) const TABLE: Design =
    Design { make: Ready::<Locked<RwLock<Index<Value>>>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "std-rwlock",
    family: "lock",
    idea: "one lock for all; readers share it, an update has it alone",
    reader_cost: "two locked instructions, on a line that every reader writes: it travels between their CPUs",
    limits: "short reads on several CPUs: they do not wait for each other, and slow each other down all the same",
    ours: false,
    make: Ready::<Whole<Locked<RwLock<Value>>>>::boxed,
};

impl<T: Send + Sync> Lock<T> for RwLock<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&RwLock::read(self).unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut RwLock::write(self).unwrap_or_else(PoisonError::into_inner))
    }
}
