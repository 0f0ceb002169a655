//! The locks of parking_lot, one word each: a mutex and a reader-writer lock.

use std::collections::{HashMap, VecDeque};
use std::collections::hash_map::RandomState;
use std::hint::black_box;
use std::mem;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use parking_lot::{Mutex, RwLock};
use slotmap::{DefaultKey, SlotMap};

use super::Rival;
use crate::advise::{Index, Limited, Lock, Locked, Value};
use crate::cases::boot::{self, Slots};
use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::{Looped, repeat, timed};
use crate::cases::maps::{Hashes, Key, LockedMap, Maps};
use crate::cases::blocked;
use crate::serve::{Cell, Domain, replace, StoreArc};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("parking_lot-mutex")
        .config::<Locked<Mutex<Value>>>()
        .table::<Locked<Mutex<Index<Value>>>>()
        .counter::<Locked<Mutex<u64>>>()
        .limiter::<Limited<Mutex<u64>>>()
        .queue::<Locked<Mutex<VecDeque<Value>>>>()
        .ids::<Locked<Mutex<SlotMap<DefaultKey, Value>>>>()
        .cell::<OneMutex>(),
    Rival::new("parking_lot-rwlock")
        .config::<Locked<RwLock<Value>>>()
        .table::<Locked<RwLock<Index<Value>>>>()
        .ids::<Locked<RwLock<SlotMap<DefaultKey, Value>>>>()
        .times(Looped::Read, read)
        .cell::<OneRwLock>()
        .times(Looped::Guard, guard)
        .times(Looped::Arc, arc)
        .store::<OneRwLock>()
        .stored::<OneRwLock>()
        .chains::<OneRwLock>()
        .maps::<OneRwLock>()
        .times(Looped::Sleepable, section)
        .times(Looped::Local, section)
        .boot(|| Box::new(RwLock::new(Slots::new(0))))
        .blocked(|| Box::new(RwLock::new(())))
        .domain::<RwLock<()>>(),
];

impl<T: Send> Lock<T> for Mutex<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&self.lock())
    }

    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut self.lock())
    }
}

impl<T: Send + Sync> Lock<T> for RwLock<T> {
    fn new(value: T) -> Self {
        Self::new(value)
    }

    #[inline]
    fn read<R>(&self, look: impl FnOnce(&T) -> R) -> R {
        look(&RwLock::read(self))
    }

    #[inline]
    fn write<R>(&self, change: impl FnOnce(&mut T) -> R) -> R {
        change(&mut RwLock::write(self))
    }
}

struct OneMutex;

static WORDS_MUTEX: Mutex<Words> = Mutex::new(words(0));

impl Cell for OneMutex {
    fn load(batches: u64) -> Duration {
        repeat(batches, || sum(&black_box(&WORDS_MUTEX).lock()))
    }

    fn store(number: u64) {
        *WORDS_MUTEX.lock() = words(number);
    }
}

/// A lock for each thing that is read.
#[derive(Debug)]
struct OneRwLock;

fn read(batches: u64) -> Duration {
    static LOCK: RwLock<u64> = RwLock::new(1);
    let lock = black_box(&LOCK);
    timed(batches, &mut (), |()| *lock.read(), |()| {})
}

static WORDS_RWLOCK: RwLock<Words> = RwLock::new(words(0));

impl Cell for OneRwLock {
    fn load(batches: u64) -> Duration {
        repeat(batches, || sum(&black_box(&WORDS_RWLOCK).read()))
    }

    fn store(number: u64) {
        *WORDS_RWLOCK.write() = words(number);
    }
}

static COUNTED: LazyLock<RwLock<Arc<u64>>> = LazyLock::new(|| RwLock::new(Arc::new(1)));

fn guard(batches: u64) -> Duration {
    let lock = black_box(&*COUNTED);
    repeat(batches, || **lock.read())
}

fn arc(batches: u64) -> Duration {
    let lock = black_box(&*COUNTED);
    repeat(batches, || {
        let taken = Arc::clone(&lock.read());
        *taken
    })
}

static STORED: LazyLock<RwLock<Arc<u64>>> = LazyLock::new(|| RwLock::new(Arc::new(1)));

impl StoreArc for OneRwLock {
    fn load() -> u64 {
        **STORED.read()
    }

    fn store(arc: Arc<u64>) {
        drop(mem::replace(&mut *STORED.write(), arc));
    }
}

fn section(batches: u64) -> Duration {
    static LOCK: RwLock<()> = RwLock::new(());
    let lock = black_box(&LOCK);
    repeat(batches, || {
        drop(lock.read());
        1
    })
}

replace! {
    OneRwLock => RwLock<Box<T>>, ();
    new: Self;
    place: |_, value| RwLock::new(Box::new(value));
    thread: |_| ();
    read: |_, _, place, look| Lock::read(place, |object| look(object));
    replace: |_, place, value| {
        let new = Box::new(value);
        drop(Lock::write(place, |object| mem::replace(object, new)));
    };
}

/// An update waits for all readers, and all readers wait for it.
impl boot::Site for RwLock<Slots> {
    fn look_up(&self, number: u64) {
        self.read().look_up(number);
    }

    fn boot(&self, updates: u64) {
        boot::boot(updates, |table| mem::replace(&mut *self.write(), table), || {});
    }
}

/// The thread that waits is the one that writes.
impl blocked::Site for RwLock<()> {
    fn hold(&self, inside: &mut dyn FnMut()) {
        let _guard = self.read();
        inside();
    }

    fn wait(&self) {
        drop(self.write());
    }
}

impl Domain for RwLock<()> {
    fn new() -> Self {
        Self::new(())
    }

    fn read(&self) {
        drop(Self::read(self));
    }

    fn wait(&self) {
        drop(self.write());
    }
}

/// One lock around the standard library's map.
impl Maps for OneRwLock {
    type Own = RandomState;
    type Of<K: Key, S: Hashes> = LockedMap<K, S, RwLock<HashMap<K, u64, S>>>;
}
