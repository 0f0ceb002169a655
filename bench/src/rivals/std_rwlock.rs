//! The standard library's reader-writer lock: around everything, or around a pointer to an object.

use std::sync::{PoisonError, RwLock};

use super::Rival;
use crate::locks::{Boxed, Locked, lock};

pub(super) const RIVALS: &[Rival] = &[Rival::new("std-rwlock")
    .readers_writer::<RwLocks>()
    .counter::<Locked<RwLock<u64>>>()
    .replace::<Boxed<RwLocks>>()];

lock!(RwLocks => RwLock<T: Send Sync>, read, write, PoisonError::into_inner);
