//! Mutexes of the standard library: one around everything, one for each bucket, one for each value.
//!
//! McKenney's ladder of 2005: code locking, then data locking, ever finer.

use std::sync::{Mutex, PoisonError};

use super::Rival;
use crate::cases::loops::Looped;
use crate::cases::read::reads;
use crate::locks::{InPlace, Lock, lock};
use crate::shapes::{Look, Table, Value, hash};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("std-mutex")
        .locked::<Mutexes>()
        .locked_alone::<Mutexes>()
        .times(Looped::Read, reads::<InPlace<Mutexes>>),
    Rival::new("mutex-per-bucket").table::<Buckets>(),
    Rival::new("mutex-per-value").fixed::<InPlace<Mutexes>>(),
];

/// A hash table whose buckets are short lists under a lock of their own.
#[derive(Debug)]
struct Buckets(Box<[Mutex<Entries>]>);

/// The entries of a bucket.
type Entries = Vec<(Box<[u8]>, Value)>;

impl Buckets {
    #[inline]
    fn locked<R>(&self, key: &[u8], f: impl FnOnce(&mut Entries) -> R) -> R {
        self.0[hash(key) as usize & (self.0.len() - 1)].write(f)
    }
}

impl Table for Buckets {
    type Thread<'a> = ();

    fn new(entries: impl Iterator<Item = (Box<[u8]>, Value)>) -> Self {
        let entries: Vec<_> = entries.collect();
        let count = entries.len().max(1).next_power_of_two();
        let table = Self((0..count).map(|_| Mutex::default()).collect());
        for (key, value) in entries {
            table.locked(&key.clone(), |bucket| bucket.push((key, value)));
        }
        table
    }

    fn thread(&self) {}

    #[inline]
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl Look<R>) -> Option<R> {
        self.locked(key, |bucket| {
            bucket.iter().find(|(known, _)| **known == *key).map(|(_, value)| look(value))
        })
    }

    #[inline]
    fn put(&self, _thread: &mut (), key: &[u8], value: Value) -> bool {
        // The old value is freed when the lock is free again.
        let old =
            self.locked(key, |bucket| match bucket.iter_mut().find(|(known, _)| **known == *key) {
                Some((_, slot)) => Some(std::mem::replace(slot, value)),
                None => {
                    bucket.push((key.into(), value));
                    None
                }
            });
        old.is_some()
    }

    #[inline]
    fn remove(&self, _thread: &mut (), key: &[u8]) -> bool {
        let old = self.locked(key, |bucket| {
            let number = bucket.iter().position(|(known, _)| **known == *key)?;
            Some(bucket.swap_remove(number))
        });
        old.is_some()
    }
}

lock!(Mutexes => Mutex<T: Send>, lock, lock, PoisonError::into_inner);
