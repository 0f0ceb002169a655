//! haphazard: hazard pointers, in the domain that all its users share.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Duration;

use haphazard::{AtomicPtr, Domain, HazardPointer};

use super::Rival;
use crate::cases::loops::{Looped, timed};
use crate::serve::{Replace, replace};

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("haphazard")
        .times(Looped::Read, read)
        .replace::<Hazard>()
        .chains::<Hazard>()
        .times(Looped::Protect, protect)];

/// Hazard pointers: a reader protects one object, not all that it might see.
#[derive(Debug)]
struct Hazard;

/// A pointer that frees its object when it is dropped.
#[derive(Debug)]
struct Place<T: Send + 'static>(Option<AtomicPtr<T>>);

impl<T: Send + 'static> Place<T> {
    #[inline(always)]
    fn pointer(&self) -> &AtomicPtr<T> {
        self.0.as_ref().expect("only drop empties a place")
    }
}

/// A hazard pointer that stays, as its documentation has it: no allocation or list in the loop.
fn protect(batches: u64) -> Duration {
    static PLACE: LazyLock<Place<u64>> = LazyLock::new(|| Hazard.place(1));
    let pointer = black_box(&*PLACE).pointer();
    let once = |hazard: &mut HazardPointer<'static>| {
        let word = *pointer.safe_load(hazard).expect("a place is never empty");
        hazard.reset_protection();
        word
    };
    timed(batches, &mut HazardPointer::new(), once, |_| {})
}

/// A section of one object: its hazard pointer protects it, and is reset.
fn read(batches: u64) -> Duration {
    protect(batches)
}

replace! {
    Hazard => Place<T>, HazardPointer<'static>;
    new: Self;
    place: |_, value| Place(Some(AtomicPtr::from(Box::new(value))));
    thread: |_| HazardPointer::new();
    read: |_, thread, place, look| {
        let result = look(place.pointer().safe_load(thread).expect("a place is never empty"));
        // The section ends here: what was read may be freed.
        thread.reset_protection();
        result
    };
    replace: |_, place, value| {
        let old = place.pointer().swap(Box::new(value)).expect("a place is never empty");
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers,
        // all of which use the global domain.
        unsafe { old.retire() };
    };
    flush: |_| _ = Domain::global().eager_reclaim();
}

impl<T: Send + 'static> Drop for Place<T> {
    fn drop(&mut self) {
        let pointer = self.0.take().expect("dropped once").into_inner();
        // SAFETY: by `&mut self` no thread reads or replaces any more, so the pointer is ours
        // alone, and it came from a `Box`.
        drop(unsafe { Box::from_raw(pointer) });
    }
}
