//! crossbeam-epoch: epoch-based reclamation, with the collector that all its users share.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use crossbeam_epoch::{Atomic, Collector, Guard, LocalHandle, Owned};

use super::Rival;
use crate::advise::Placed;
use crate::cases::enqueue::{Caller, callback, closures_run};
use crate::cases::loops::{Looped, timed};
use crate::cases::replace::Replacements;
use crate::cases::wait::{Flavour, Idle, Member, chain, sections};
use crate::serve::replace;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("crossbeam-epoch")
        .config::<Placed<Epoch>>()
        .per_key::<Epoch>()
        .times(Looped::Read, read_epoch)
        .times(Looped::Nested, nested_epoch)
        .replace::<Epoch>()
        .hoards()
        .chains::<Epoch>()
        .wait(|| Arc::new(Epochs(Collector::new())))
        .enqueue(Replacements::<Epoch>::boxed, || Box::new(Deferred)),
    Rival::new("crossbeam-handle")
        .times(Looped::Read, read_handle)
        .times(Looped::Nested, nested_handle),
];

/// A collector with participants of its own.
struct Epochs(Collector);

/// One that does not read.
impl Idle for LocalHandle {}

impl Flavour for Epochs {
    fn enrol(&self) -> Box<dyn Member + '_> {
        Box::new(self.0.register())
    }

    fn enrol_idle(&self) -> Box<dyn Idle + '_> {
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

/// The word that is read.
static SLOT: LazyLock<Atomic<u64>> = LazyLock::new(|| Atomic::new(1));

fn read_epoch(batches: u64) -> Duration {
    read(batches, crossbeam_epoch::pin)
}

fn nested_epoch(batches: u64) -> Duration {
    let _outer = crossbeam_epoch::pin();
    read_epoch(batches)
}

/// The same by a handle of the thread's, without the look into thread-local storage.
fn read_handle(batches: u64) -> Duration {
    let handle = crossbeam_epoch::default_collector().register();
    read(batches, || handle.pin())
}

fn nested_handle(batches: u64) -> Duration {
    let handle = crossbeam_epoch::default_collector().register();
    let _outer = handle.pin();
    read(batches, || handle.pin())
}

#[inline(always)]
fn read(batches: u64, pin: impl Fn() -> Guard) -> Duration {
    let slot = black_box(&*SLOT);
    let read = |_: &mut ()| {
        let guard = pin();
        // SAFETY: the slot points to a word that is never freed.
        unsafe { *slot.load(Ordering::Acquire, &guard).deref() }
    };
    timed(batches, &mut (), read, |()| {})
}

struct Deferred;

impl Caller for Deferred {
    fn call(&mut self, count: u64) {
        for _ in 0..count {
            crossbeam_epoch::pin().defer(callback());
        }
    }

    fn finish(&mut self) {
        crossbeam_epoch::pin().flush();
    }

    fn sum(&self) -> u64 {
        closures_run()
    }
}

/// A pointer that frees its object when it is dropped, which crossbeam's own does not.
#[derive(Debug)]
struct Place<T>(Atomic<T>);

replace! {
    Epoch => Place<T>, ();
    new: Self;
    place: |_, value| Place(Atomic::new(value));
    thread: |_| ();
    read: |_, _, place, look| {
        let guard = crossbeam_epoch::pin();
        // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
        let object = place.0.load(Ordering::Acquire, &guard);
        // SAFETY: a place always points to an object, whose destruction waits for this guard.
        look(unsafe { object.deref() })
    };
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
