//! The locks of parking_lot, one word each: a mutex and a reader-writer lock.

use std::mem;
use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::Rival;
use crate::cases::blocked;
use crate::cases::boot::{self, Slots};
use crate::cases::loops::{Looped, sections};
use crate::cases::read::reads;
use crate::locks::{Boxed, InPlace, Locked, lock};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("parking_lot-mutex")
        .locked::<Mutexes>()
        .locked_alone::<Mutexes>()
        .cell::<Locked<Mutex<[u64; 4]>>>(),
    Rival::new("parking_lot-rwlock")
        .locked::<RwLocks>()
        .times(Looped::Read, reads::<InPlace<RwLocks>>)
        .cell::<Locked<RwLock<[u64; 4]>>>()
        .arcs::<Locked<RwLock<Arc<u64>>>>()
        .stored::<Boxed<RwLocks>>()
        .chains::<Boxed<RwLocks>>()
        .maps::<Boxed<RwLocks>>()
        .times(Looped::Sleepable, sections::<Locked<RwLock<()>>>)
        .times(Looped::Local, sections::<Locked<RwLock<()>>>)
        .boot(|| Box::new(RwLock::new(Slots::new(0))))
        .blocked(|time| blocked::measure(&Locked(RwLock::new(())), time))
        .domain::<Locked<RwLock<()>>>(),
];

lock!(Mutexes => Mutex<T: Send>, lock, lock);
lock!(RwLocks => RwLock<T: Send Sync>, read, write);

/// An update waits for all readers, and all readers wait for it.
impl boot::Site for RwLock<Slots> {
    fn look_up(&self, number: u64) {
        self.read().look_up(number);
    }

    fn boot(&self, updates: u64) {
        boot::boot(updates, |table| mem::replace(&mut *self.write(), table), || {});
    }
}
