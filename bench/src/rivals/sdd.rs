//! sdd, the epochs below scc's tables.

use std::sync::atomic::Ordering;

use sdd::{AtomicOwned, Guard, Owned, Tag};

use super::Rival;
use crate::cases::enqueue::{Closures, callback};
use crate::serve::replace;

pub(super) const RIVALS: &[Rival] = &[Rival::new("sdd")
    .sections::<Sdd>()
    .replace::<Sdd>()
    .hoards()
    .chains::<Sdd>()
    .enqueue(|| Box::new(Closures(|| Guard::new().defer_execute(callback()), advance)))];

/// Epochs, with garbage in the retiring thread's hands.
#[derive(Debug, Default)]
struct Sdd;

/// Advances the epoch if no thread is behind. Garbage of ended threads is freed by the thread that
/// gets it.
pub(super) fn advance() {
    let guard = Guard::new();
    guard.set_has_garbage();
    guard.accelerate();
}

replace! {
    Sdd => AtomicOwned<T>, ();
    place: |_, value| AtomicOwned::new(value);
    read: |_, _, place, look| {
        let guard = Guard::new();
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = place.load(Ordering::Acquire, &guard);
        look(object.as_ref().expect("a place is never empty"))
    };
    replace: |_, _, place, value| {
        // Epochs advance when guards end: a thread that updates without one frees nothing.
        let _guard = Guard::new();
        // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one whole.
        let (old, _) = place.swap((Some(Owned::new(value)), Tag::None), Ordering::AcqRel);
        // Which retires it.
        drop(old);
    };
    flush: |_| advance();
}
