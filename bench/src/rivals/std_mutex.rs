//! Mutexes of the standard library: one around everything, one for each bucket, one for each value.
//!
//! McKenney's ladder of 2005: code locking, then data locking, ever finer.

use std::hash::BuildHasher;
use std::mem;
use std::sync::{Mutex, PoisonError};

use super::Rival;
use crate::cases::loops::{Looped, reads};
use crate::cases::maps::Map;
use crate::locks::{InPlace, Lock, lock};
use crate::shapes::{Hash, Key, Value};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("std-mutex")
        .locked::<Mutexes>()
        .locked_alone::<Mutexes>()
        .times(Looped::Read, reads::<InPlace<Mutexes>>),
    Rival::new("mutex-per-bucket").table::<Buckets>(),
    Rival::new("mutex-per-value").fixed::<InPlace<Mutexes>>(),
];

/// The entries of a bucket: a short list, as in the program that is printed.
type List = Vec<(Key, Value)>;

/// A bucket for each key that there is at first. Keys are hashed before its lock is taken, and what
/// is freed is freed when it is free again.
struct Buckets(Box<[Mutex<List>]>);

impl Buckets {
    #[inline(always)]
    fn of(&self, key: &Key) -> &Mutex<List> {
        &self.0[(Hash::default().hash_one(key) >> 32) as usize & (self.0.len() - 1)]
    }
}

impl Map<Key, Value> for Buckets {
    type Thread = ();

    fn with_capacity(keys: usize) -> Self {
        let bucket = |_| Mutex::new(List::new());
        Self((0..keys.max(1).next_power_of_two()).map(bucket).collect())
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<R>(&self, (): &mut (), key: &Key, look: impl FnOnce(&Value) -> R) -> Option<R> {
        let entry =
            |list: &List| list.iter().find(|(known, _)| known == key).map(|(_, value)| look(value));
        self.of(key).read(entry)
    }

    #[inline(always)]
    fn put(&self, (): &mut (), key: &Key, value: Value) -> bool {
        let old = self.of(key).write(|list| {
            if let Some((_, old)) = list.iter_mut().find(|(known, _)| known == key) {
                return Some(mem::replace(old, value));
            }
            list.push((key.clone(), value));
            None
        });
        old.is_some()
    }

    #[inline(always)]
    fn remove(&self, (): &mut (), key: &Key) -> bool {
        let take = |list: &mut List| {
            let number = list.iter().position(|(known, _)| known == key)?;
            Some(list.swap_remove(number))
        };
        self.of(key).write(take).is_some()
    }
}

lock!(Mutexes => Mutex<T: Send>, lock, lock, PoisonError::into_inner);
