//! The locks of parking_lot, one word each: a mutex and a reader-writer lock.

use std::sync::Arc;

use parking_lot::{Mutex, RwLock};

use super::Rival;
use crate::cases::{blocked, boot};
use crate::locks::{Locked, lock};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("parking_lot-mutex")
        .locked::<Mutexes>()
        .locked_alone::<Mutexes>()
        .cell::<Locked<Mutex<[u64; 4]>>>(),
    Rival::new("parking_lot-rwlock")
        .readers_writer::<RwLocks>()
        .cell::<Locked<RwLock<[u64; 4]>>>()
        .arcs::<Locked<RwLock<Arc<u64>>>>()
        .boot(|readers, times| boot::measure(&Locked(RwLock::new(())), readers, times))
        .blocked(|time| blocked::measure(&Locked(RwLock::new(())), time))
        .domain::<Locked<RwLock<()>>>(),
];

lock!(Mutexes => Mutex<T: Send>, lock, lock);
lock!(RwLocks => RwLock<T: Send Sync>, read, write);
