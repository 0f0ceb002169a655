//! seize, with a collector of its own for each measurement.

use std::sync::atomic::{AtomicPtr, Ordering};

use seize::{Collector, Guard, reclaim};

use super::Scheme;

/// Hyaline: batches are handed to the active readers, and the last one frees them.
#[derive(Debug)]
pub(in crate::bench) struct Hyaline(Collector);

/// A pointer that frees its object when it is dropped.
#[derive(Debug)]
pub(in crate::bench) struct Place<T>(AtomicPtr<T>);

impl Scheme for Hyaline {
    const NUMBER: usize = 3;
    type Place<T: Send + Sync + 'static> = Place<T>;
    type Thread<'a> = ();

    fn new() -> Self {
        Self(Collector::new())
    }

    fn place<T: ::quiescence::Weigh + Send + Sync + 'static>(&self, value: T) -> Place<T> {
        Place(AtomicPtr::new(Box::into_raw(Box::new(value))))
    }

    fn thread(&self) {}

    #[inline(always)]
    fn read<T: Send + Sync + 'static, R>(
        &self,
        _thread: &mut (),
        place: &Place<T>,
        look: impl FnOnce(&T) -> R,
    ) -> R {
        let guard = self.0.enter();
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = guard.protect(&place.0, Ordering::Acquire);
        // SAFETY: a place always points to an object, and `replace` retires it to this collector.
        look(unsafe { &*object })
    }

    #[inline(always)]
    fn replace<T: Send + Sync + 'static>(&self, _thread: &mut (), place: &Place<T>, value: T) {
        let new = Box::into_raw(Box::new(value));
        // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one whole.
        let old = place.0.swap(new, Ordering::AcqRel);
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers,
        // and it came from a `Box`.
        unsafe { self.0.retire(old, reclaim::boxed) };
    }

    /// Only this thread's own batch can be asked for; the others wait for the end of the collector.
    fn flush(&self) {
        self.0.enter().flush();
    }
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        // SAFETY: by `&mut self` nobody reads or replaces any more, so the pointer is ours alone,
        // and it came from a `Box`.
        drop(unsafe { Box::from_raw(*self.0.get_mut()) });
    }
}
