//! crossbeam-epoch: epoch-based reclamation, with the collector that all its users share.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use crossbeam_epoch::{Atomic, Collector, Guard, LocalHandle, Owned};

use super::Rival;
use crate::cases::enqueue::{Closures, callback};
use crate::cases::loops::{Loop, Looped, repeat};
use crate::cases::read::{nested, reads};
use crate::cases::replace::Replacements;
use crate::cases::wait::{Flavour, Member, chain, sections};
use crate::serve::{Replace, replace};
use crate::shapes::Whole;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("crossbeam-epoch")
        .config::<Whole<Epoch>>()
        .per_key::<Epoch>()
        .times(Looped::Read, reads::<Epoch>)
        .times(Looped::Nested, nested::<Epoch>)
        .replace::<Epoch>()
        .hoards()
        .chains::<Epoch>()
        .wait(|| Arc::new(Epochs(Collector::new())))
        .enqueue(Replacements::<Epoch>::boxed, || {
            let pin = crossbeam_epoch::pin;
            Box::new(Closures(move || pin().defer(callback()), move || pin().flush()))
        }),
    Rival::new("crossbeam-handle")
        .times(Looped::Read, by_handle::<false>)
        .times(Looped::Nested, by_handle::<true>),
];

/// A collector with participants of its own.
struct Epochs(Collector);

impl Flavour for Epochs {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new(self.0.register())
    }
}

impl Member for LocalHandle {
    /// There is no such call: as a user would, it defers a function, and collects until that has
    /// run.
    fn synchronize(&mut self) {
        let is_over = Arc::new(AtomicBool::new(false));
        let inside = Arc::clone(&is_over);
        // Release and Acquire: the thread that runs it has waited for the readers.
        self.pin().defer(move || inside.store(true, Ordering::Release));
        while !is_over.load(Ordering::Acquire) {
            self.pin().flush();
        }
    }

    fn read_until(&mut self, stop: &AtomicI32, steps: u32, x: &mut u64) -> u64 {
        sections(stop, || {
            let _guard = self.pin();
            *x = chain(*x, steps);
        })
    }
}

/// Epochs: readers pin the current one.
#[derive(Debug)]
struct Epoch;

/// Reads by a handle of the thread's, without the look into thread-local storage.
fn by_handle<const IS_NESTED: bool>() -> Loop {
    let place = Epoch.place(1);
    Loop::new(move |batches| {
        let handle = crossbeam_epoch::default_collector().register();
        let _outer = IS_NESTED.then(|| handle.pin());
        let place = black_box(&place);
        repeat(batches, || place.read(&handle.pin(), |word| *word))
    })
}

/// A pointer that frees its object when it is dropped, which crossbeam's own does not.
#[derive(Debug)]
struct Place<T>(Atomic<T>);

impl<T> Place<T> {
    #[inline(always)]
    fn read<R>(&self, guard: &Guard, look: impl FnOnce(&T) -> R) -> R {
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = self.0.load(Ordering::Acquire, guard);
        // SAFETY: a place always points to an object, whose destruction waits for this guard.
        look(unsafe { object.deref() })
    }
}

replace! {
    Epoch => Place<T>, ();
    new: Self;
    place: |_, value| Place(Atomic::new(value));
    thread: |_| ();
    read: |_, _, place, look| place.read(&crossbeam_epoch::pin(), look);
    replace: |_, place, value| {
        let guard = crossbeam_epoch::pin();
        // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one whole.
        let old = place.0.swap(Owned::new(value), Ordering::AcqRel, &guard);
        // SAFETY: the swap took the only pointer to the old object out of reach of new readers.
        unsafe { guard.defer_destroy(old) };
    };
    // Every call advances the epoch if no thread is behind, and frees a few bags of garbage.
    flush: |_| {
        crossbeam_epoch::pin().flush();
        // A pinned thread may need the CPU.
        std::thread::yield_now();
    };
}

impl<T> Drop for Place<T> {
    fn drop(&mut self) {
        // SAFETY: by `&mut self` no thread reads or replaces any more, so the pointer is ours
        // alone, and it came from an `Owned`.
        drop(unsafe { std::mem::take(&mut self.0).into_owned() });
    }
}
