//! The standard library's reader-writer lock: around everything, or around a pointer to an object.
//!
//! The pointer is replaced under the lock, and the old object freed after it: no thread waits for
//! the allocator. As with the others, the object is the updater's to allocate.

use std::collections::HashMap;
use std::collections::hash_map::RandomState;
use std::hint::black_box;
use std::mem;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};
use std::time::Duration;

use slotmap::{DefaultKey, SlotMap};

use super::Rival;
use crate::advise::{Index, Lock, Locked, Value};
use crate::cases::loops::{Looped, repeat, timed};
use crate::cases::maps::{Hashes, Key, LockedMap, Maps};
use crate::serve::replace;

pub(super) const RIVALS: &[Rival] = &[Rival::new("std-rwlock")
    .config::<Locked<RwLock<Value>>>()
    .table::<Locked<RwLock<Index<Value>>>>()
    .counter::<Locked<RwLock<u64>>>()
    .ids::<Locked<RwLock<SlotMap<DefaultKey, Value>>>>()
    .times(Looped::Read, read)
    .times(Looped::Guard, |batches| {
        let lock = black_box(&*COUNTED);
        repeat(batches, || **lock.read().expect("no reader panics"))
    })
    .times(Looped::Arc, |batches| {
        let lock = black_box(&*COUNTED);
        repeat(batches, || {
            let taken = Arc::clone(&lock.read().expect("no reader panics"));
            *taken
        })
    })
    .stored::<StdRwLock>()
    .replace::<StdRwLock>()
    .chains::<StdRwLock>()
    .maps::<StdRwLock>()
    .times(Looped::Sleepable, section)
    .times(Looped::Local, section)];

static COUNTED: LazyLock<RwLock<Arc<u64>>> = LazyLock::new(|| RwLock::new(Arc::new(1)));

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

/// A lock for each pointer.
#[derive(Debug)]
pub(crate) struct StdRwLock;

fn read(batches: u64) -> Duration {
    static LOCK: RwLock<u64> = RwLock::new(1);
    let lock = black_box(&LOCK);
    timed(batches, &mut (), |()| *lock.read().expect("no reader panics"), |()| {})
}

fn section(batches: u64) -> Duration {
    static LOCK: RwLock<()> = RwLock::new(());
    let lock = black_box(&LOCK);
    repeat(batches, || {
        drop(lock.read().expect("no reader panics"));
        1
    })
}

replace! {
    StdRwLock => RwLock<Box<T>>, ();
    new: Self;
    place: |_, value| RwLock::new(Box::new(value));
    thread: |_| ();
    read: |_, _, place, look| Lock::read(place, |object| look(object));
    replace: |_, place, value| {
        let new = Box::new(value);
        drop(Lock::write(place, |object| mem::replace(object, new)));
    };
}

/// One lock around the standard library's map.
impl Maps for StdRwLock {
    type Own = RandomState;
    type Of<K: Key, S: Hashes> = LockedMap<K, S, RwLock<HashMap<K, u64, S>>>;
}
