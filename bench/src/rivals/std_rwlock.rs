//! The standard library's reader-writer lock: around everything, or around a pointer to an object.

use std::sync::{Arc, PoisonError, RwLock};

use super::Rival;
use crate::cases::loops::{Looped, reads, sections};
use crate::cases::store;
use crate::locks::{Boxed, InPlace, Locked, lock};

pub(super) const RIVALS: &[Rival] = &[Rival::new("std-rwlock")
    .locked::<RwLocks>()
    .counter::<Locked<RwLock<u64>>>()
    .times(Looped::Read, reads::<InPlace<RwLocks>>)
    .times(Looped::Arc, store::arcs::<Locked<RwLock<Arc<u64>>>>)
    .stored::<Boxed<RwLocks>>()
    .replace::<Boxed<RwLocks>>()
    .chains::<Boxed<RwLocks>>()
    .maps::<Boxed<RwLocks>>()
    .times(Looped::Sleepable, sections::<Locked<RwLock<()>>>)
    .times(Looped::Local, sections::<Locked<RwLock<()>>>)];

lock!(RwLocks => RwLock<T: Send Sync>, read, write, PoisonError::into_inner);
