//! Mutexes of the standard library: one around everything, one for each bucket, one for each value.
//!
//! McKenney's ladder of 2005: code locking, then data locking, ever finer.

use std::collections::VecDeque;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use slotmap::{DefaultKey, SlotMap};

use super::Rival;
use crate::advise::{Churn, Index, Limited, Lock, Locked, Table, Value, hash};
use crate::cases::loops::{Looped, timed};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("std-mutex")
        .config::<Locked<Mutex<Value>>>()
        .table::<Locked<Mutex<Index<Value>>>>()
        .counter::<Locked<Mutex<u64>>>()
        .limiter::<Limited<Mutex<u64>>>()
        .queue::<Locked<Mutex<VecDeque<Value>>>>()
        .ids::<Locked<Mutex<SlotMap<DefaultKey, Value>>>>()
        .times(Looped::Read, read),
    Rival::new("mutex-per-bucket").table::<Buckets>(),
    Rival::new("mutex-per-value").fixed::<Locked<Mutex<Value>>>(),
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
    fn read<R>(&self, _thread: &mut (), key: &[u8], look: impl FnOnce(&Value) -> R) -> Option<R> {
        self.locked(key, |bucket| {
            bucket.iter().find(|(known, _)| **known == *key).map(|(_, value)| look(value))
        })
    }

    #[inline]
    fn update(&self, thread: &mut (), key: &[u8], value: Value) {
        self.put(thread, key, value);
    }
}

impl Churn for Buckets {
    #[inline]
    fn put(&self, _thread: &mut (), key: &[u8], value: Value) -> bool {
        // The old value is freed when the lock is free again.
        let old = self.locked(key, |bucket| {
            match bucket.iter_mut().find(|(known, _)| **known == *key) {
                Some((_, slot)) => Some(std::mem::replace(slot, value)),
                None => {
                    bucket.push((key.into(), value));
                    None
                }
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

fn read(batches: u64) -> Duration {
    static LOCK: Mutex<u64> = Mutex::new(1);
    let lock = black_box(&LOCK);
    timed(batches, &mut (), |()| *lock.lock().expect("no reader panics"), |()| {})
}
