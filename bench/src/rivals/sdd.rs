//! sdd, the epochs below scc's tables.

use std::hint::black_box;
use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use sdd::{AtomicOwned, Guard, Owned, Tag};

use super::Rival;
use crate::cases::enqueue::{Caller, callback, closures_run};
use crate::cases::loops::{Looped, repeat};
use crate::cases::replace::Replacements;
use crate::serve::replace;

pub(super) const RIVALS: &[Rival] = &[Rival::new("sdd")
    .times(Looped::Read, read)
    .times(Looped::Nested, nested)
    .replace::<Sdd>()
    .hoards()
    .chains::<Sdd>()
    .enqueue(Replacements::<Sdd>::boxed, || Box::new(Deferred))];

/// Epochs, with garbage in the retiring thread's hands.
#[derive(Debug)]
struct Sdd;

fn read(batches: u64) -> Duration {
    static PLACE: LazyLock<AtomicOwned<u64>> = LazyLock::new(|| AtomicOwned::new(1));
    let place = black_box(&*PLACE);
    repeat(batches, || {
        let guard = Guard::new();
        *place.load(Ordering::Acquire, &guard).as_ref().expect("it is never taken out")
    })
}

fn nested(batches: u64) -> Duration {
    let _outer = Guard::new();
    read(batches)
}

/// Advances the epoch if no thread is behind. Garbage of ended threads is freed by the thread that
/// gets it.
pub(super) fn advance() {
    let guard = Guard::new();
    guard.set_has_garbage();
    guard.accelerate();
}

struct Deferred;

impl Caller for Deferred {
    fn call(&mut self, count: u64) {
        for _ in 0..count {
            Guard::new().defer_execute(callback());
        }
    }

    fn finish(&mut self) {
        advance();
    }

    fn sum(&self) -> u64 {
        closures_run()
    }
}

replace! {
    Sdd => AtomicOwned<T>, ();
    new: Self;
    place: |_, value| AtomicOwned::new(value);
    thread: |_| ();
    read: |_, _, place, look| {
        let guard = Guard::new();
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = place.load(Ordering::Acquire, &guard);
        look(object.as_ref().expect("a place is never empty"))
    };
    replace: |_, place, value| {
        // Epochs advance when guards end: a thread that updates without one frees nothing.
        let _guard = Guard::new();
        // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one whole.
        let (old, _) = place.swap((Some(Owned::new(value)), Tag::None), Ordering::AcqRel);
        // Which retires it.
        drop(old);
    };
    flush: |_| advance();
}
