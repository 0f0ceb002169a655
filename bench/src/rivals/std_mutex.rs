//! Mutexes of the standard library: one around everything, one for each bucket, one for each value.
//!
//! McKenney's ladder of 2005: code locking, then data locking, ever finer.

use std::sync::{Mutex, PoisonError};

use hashbrown::HashTable;

use super::Rival;
use crate::cases::loops::{Looped, reads};
use crate::cases::maps::locked::{LockedMap, Shares};
use crate::locks::{InPlace, lock};
use crate::shapes;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("std-mutex")
        .locked::<Mutexes>()
        .locked_alone::<Mutexes>()
        .times(Looped::Read, reads::<InPlace<Mutexes>>),
    Rival::new("mutex-per-bucket")
        .table::<LockedMap<Buckets<HashTable<(Box<[u8]>, shapes::Value)>>, shapes::Hash>>(),
    Rival::new("mutex-per-value").fixed::<InPlace<Mutexes>>(),
];

/// A bucket for each key that there is at first.
struct Buckets<T>(Box<[Mutex<T>]>);

impl<T: Send + 'static> Shares<T> for Buckets<T> {
    type Lock = Mutex<T>;

    fn new(keys: usize, make: impl Fn(usize) -> T) -> Self {
        let bucket = |_| Mutex::new(make(0));
        Self((0..keys.max(1).next_power_of_two()).map(bucket).collect())
    }

    #[inline]
    fn of(&self, hash: u64) -> &Mutex<T> {
        &self.0[(hash >> 32) as usize & (self.0.len() - 1)]
    }
}

lock!(Mutexes => Mutex<T: Send>, lock, lock, PoisonError::into_inner);
