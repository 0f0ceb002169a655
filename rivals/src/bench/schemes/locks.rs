//! Reader-writer locks around a pointer to the object.
//!
//! The pointer is replaced under the lock, and the old object freed after it: nobody waits for the
//! allocator. As with the others, the object is the updater's to allocate.

use std::mem;
use std::sync::{PoisonError, RwLock};

use super::Scheme;

/// The standard library's lock.
#[derive(Debug)]
pub(in crate::bench) struct StdRwLock;

impl Scheme for StdRwLock {
    const NUMBER: usize = 7;
    type Place<T: Send + Sync + 'static> = RwLock<Box<T>>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> RwLock<Box<T>> {
        RwLock::new(Box::new(value))
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &RwLock<Box<T>>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        look(&place.read().unwrap_or_else(PoisonError::into_inner))
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(
        &self,
        _thread: &mut (),
        place: &RwLock<Box<T>>,
        value: T,
    ) {
        let new = Box::new(value);
        let old = mem::replace(&mut *place.write().unwrap_or_else(PoisonError::into_inner), new);
        drop(old);
    }
}

/// The lock of parking_lot: one word.
#[derive(Debug)]
pub(in crate::bench) struct ParkingLotRwLock;

impl Scheme for ParkingLotRwLock {
    const NUMBER: usize = 8;
    type Place<T: Send + Sync + 'static> = parking_lot::RwLock<Box<T>>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(
        &self,
        value: T,
    ) -> parking_lot::RwLock<Box<T>> {
        parking_lot::RwLock::new(Box::new(value))
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &parking_lot::RwLock<Box<T>>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        look(&place.read())
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(
        &self,
        _thread: &mut (),
        place: &parking_lot::RwLock<Box<T>>,
        value: T,
    ) {
        let new = Box::new(value);
        let old = mem::replace(&mut *place.write(), new);
        drop(old);
    }
}
