//! crossbeam-epoch, with the collector that all its users share.

use std::sync::atomic::Ordering;

use crossbeam_epoch::{Atomic, Owned};

use super::Scheme;

/// Epochs: readers pin the current one.
#[derive(Debug)]
pub(in crate::bench) struct Epoch;

/// A pointer that frees its object when it is dropped, which crossbeam's own does not.
#[derive(Debug)]
pub(in crate::bench) struct Place<T>(Atomic<T>);

impl Scheme for Epoch {
    const NUMBER: usize = 2;
    type Place<T: Send + Sync + 'static> = Place<T>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Place<T> {
        Place(Atomic::new(value))
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &Place<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        let guard = crossbeam_epoch::pin();
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = place.0.load(Ordering::Acquire, &guard);
        // SAFETY: a place always points to an object, whose destruction waits for this guard.
        look(unsafe { object.deref() })
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(&self, _thread: &mut (), place: &Place<T>, value: T) {
        let guard = crossbeam_epoch::pin();
        // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one whole.
        let old = place.0.swap(Owned::new(value), Ordering::AcqRel, &guard);
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers.
        unsafe { guard.defer_destroy(old) };
    }

    /// Every call advances the epoch if nobody is behind, and frees a few bags of garbage.
    fn flush(&self) {
        crossbeam_epoch::pin().flush();
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        // SAFETY: by `&mut self` nobody reads or replaces any more, so the pointer is ours alone,
        // and it came from an `Owned`.
        drop(unsafe { std::mem::take(&mut self.0).into_owned() });
    }
}
