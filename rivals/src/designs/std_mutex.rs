//! One mutex of the standard library around everything.

use std::sync::{Mutex, PoisonError};

use super::Design;
use super::locked::{Lock, Locked};
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Index, Whole};

pub(super) const TABLE: Design =
    Design { make: Ready::<Locked<Mutex<Index<Value>>>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "std-mutex",
    family: "lock",
    idea: "one lock for all, readers included",
    reader_cost: "two locked instructions, on a line that every reader writes; readers also wait for each other",
    limits: "many readers: they take turns, and the lock's line travels between their CPUs",
    ours: false,
    make: Ready::<Whole<Locked<Mutex<Value>>>>::boxed,
};

impl<T: Send> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
