//! One mutex of the standard library around everything.

use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use super::{About, Family, Rival};
use crate::advise::{Index, Lock, Locked, Value};
use crate::cases::loops::timed;
use crate::serve::Read;

pub(super) const RIVALS: &[Rival] = &[Rival::new("std-mutex")
    .about(&ABOUT)
    .config::<Locked<Mutex<Value>>>()
    .table::<Locked<Mutex<Index<Value>>>>()
    .read::<Mutex<u64>>()];

const ABOUT: About = About {
    family: Family::Lock,
    idea: "one lock for all, readers included",
    reader_cost: "two locked instructions, on a line that every reader writes; readers also wait \
                  for each other",
    limits: "many readers: they take turns, and the lock's line travels between their CPUs",
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

impl Read for Mutex<u64> {
    fn read(batches: u64) -> Duration {
        static LOCK: Mutex<u64> = Mutex::new(1);
        let lock = black_box(&LOCK);
        timed(batches, &mut (), |()| *lock.lock().expect("no reader panics"), |()| {})
    }
}
