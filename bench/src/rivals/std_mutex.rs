//! Mutexes of the standard library: one around everything, one for each bucket, one for each value.
//!
//! McKenney's ladder of 2005: code locking, then data locking, ever finer.

use std::sync::{Mutex, PoisonError};

use super::Rival;
use crate::cases::loops::Looped;
use crate::cases::maps::Key;
use crate::cases::maps::locked::{Entries, LockedMap, Shares};
use crate::cases::read::reads;
use crate::locks::{InPlace, lock};
use crate::shapes;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("std-mutex")
        .locked::<Mutexes>()
        .locked_alone::<Mutexes>()
        .times(Looped::Read, reads::<InPlace<Mutexes>>),
    Rival::new("mutex-per-bucket")
        .table::<LockedMap<Buckets<Vec<(Box<[u8]>, shapes::Value)>>, shapes::Hash>>(),
    Rival::new("mutex-per-value").fixed::<InPlace<Mutexes>>(),
];

/// A bucket for each key that there is at first.
#[derive(Debug)]
struct Buckets<T>(Box<[Mutex<T>]>);

impl<T: Send + 'static> Shares for Buckets<T> {
    type Of = T;
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

/// A bucket: a short list.
impl<K: Key, V: 'static> Entries<K, V> for Vec<(K, V)> {
    fn with_capacity(entries: usize) -> Self {
        Self::with_capacity(entries)
    }

    #[inline]
    fn find(&self, _hash: u64, key: &K) -> Option<&V> {
        self.iter().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    #[inline]
    fn find_mut(&mut self, _hash: u64, key: &K) -> Option<&mut V> {
        self.iter_mut().find(|(known, _)| known == key).map(|(_, value)| value)
    }

    fn add(&mut self, _hash: u64, entry: (K, V), _hash_of: impl Fn(&K) -> u64) {
        self.push(entry);
    }

    #[inline]
    fn take(&mut self, _hash: u64, key: &K) -> Option<(K, V)> {
        let number = self.iter().position(|(known, _)| known == key)?;
        Some(self.swap_remove(number))
    }
}

lock!(Mutexes => Mutex<T: Send>, lock, lock, PoisonError::into_inner);
