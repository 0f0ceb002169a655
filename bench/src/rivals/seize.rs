//! seize: reclamation by batches that are handed to the active threads (Hyaline), with a collector
//! of its own for each measurement.

use std::sync::atomic::{AtomicPtr, Ordering};

use seize::{Collector, Guard, reclaim};

use super::Rival;
use crate::serve::replace;

pub(super) const RIVALS: &[Rival] = &[Rival::new("seize")
    .values::<Hyaline>()
    .sections::<Hyaline>()
    .replace::<Hyaline>()
    .hoards()
    .chains::<Hyaline>()];

/// Batches are handed to the active readers, and the last one frees them.
#[derive(Debug, Default)]
struct Hyaline(Collector);

/// A pointer that frees its object when it is dropped.
struct Place<T>(AtomicPtr<T>);

replace! {
    Hyaline => Place<T>, ();
    place: |_, value| Place(AtomicPtr::new(Box::into_raw(Box::new(value))));
    read: |hyaline, _, place, look| {
        let guard = hyaline.0.enter();
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = guard.protect(&place.0, Ordering::Acquire);
        // SAFETY: a place always points to an object, and `replace` retires it to this collector.
        look(unsafe { &*object })
    };
    replace: |hyaline, _, place, value| {
        let new = Box::into_raw(Box::new(value));
        // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one whole.
        let old = place.0.swap(new, Ordering::AcqRel);
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers,
        // and it came from a `Box`.
        unsafe { hyaline.0.retire(old, reclaim::boxed) };
    };
    // Only this thread's own batch can be asked for; the others wait for the end of the collector.
    flush: |hyaline| hyaline.0.enter().flush();
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        // SAFETY: by `&mut self` no thread reads or replaces any more, so the pointer is ours
        // alone, and it came from a `Box`.
        drop(unsafe { Box::from_raw(*self.0.get_mut()) });
    }
}
