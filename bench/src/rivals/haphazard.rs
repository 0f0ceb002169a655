//! haphazard: hazard pointers, in the domain that all its users share.

use haphazard::{AtomicPtr, Domain, HazardPointer};

use super::Rival;
use crate::cases::loops::{Looped, reads};
use crate::serve::replace;

pub(super) const RIVALS: &[Rival] = &[Rival::new("haphazard")
    .times(Looped::Read, reads::<Hazard>)
    .replace::<Hazard>()
    .chains::<Hazard>()
    .times(Looped::Protect, reads::<Hazard>)];

/// Hazard pointers: a reader protects one object, not all that it might see. They stay, as its
/// documentation has it: no allocation or list in the loop.
#[derive(Debug, Default)]
struct Hazard;

/// A pointer that frees its object when it is dropped.
struct Place<T: Send + 'static>(AtomicPtr<T>);

replace! {
    Hazard => Place<T>, HazardPointer<'static>;
    place: |_, value| Place(AtomicPtr::from(Box::new(value)));
    thread: |_| HazardPointer::new();
    read: |_, thread, place, look| {
        let result = look(place.0.safe_load(thread).expect("a place is never empty"));
        // The section ends here: what was read may be freed.
        thread.reset_protection();
        result
    };
    replace: |_, _, place, value| {
        let old = place.0.swap(Box::new(value)).expect("a place is never empty");
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers,
        // all of which use the global domain.
        unsafe { old.retire() };
    };
    flush: |_| _ = Domain::global().eager_reclaim();
}

impl<T: Send + 'static> Drop for Place<T> {
    fn drop(&mut self) {
        // SAFETY: by `&mut self` no thread reads or replaces any more, so the pointer is ours
        // alone, and it came from a `Box`. An `AtomicPtr` does not free what it points to.
        drop(unsafe { Box::from_raw(self.0.load_ptr()) });
    }
}
