//! crossbeam-epoch: epoch-based reclamation, with the collector that all its users share, and by
//! handles of a collector of one's own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crossbeam_epoch::{Collector, LocalHandle};

use super::Rival;
use crate::cases::enqueue::{Closures, callback};
use crate::cases::loops::Looped;
use crate::cases::wait::{Flavour, Member, chain, member};

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("crossbeam-epoch")
        .values::<Epoch>()
        .sections::<Epoch>()
        .replace::<Epoch>()
        .hoards()
        .chains::<Epoch>()
        .wait(|| Box::new(Collector::new()))
        .enqueue(|| {
            let pin = crossbeam_epoch::pin;
            Box::new(Closures(move || pin().defer(callback()), move || pin().flush()))
        }),
    Rival::new("crossbeam-handle")
        .times(Looped::Read, by_handle::<false>)
        .times(Looped::Nested, by_handle::<true>)
        .replace::<Handles>(),
];

/// The interface of crossbeam-epoch in this module: sections by `pin`, and by handles of a
/// collector in a domain; and what waits until some of it is freed, of the collector that all
/// share, and of one in a domain.
macro_rules! epochs {
    (
        $module:path, in $domain:ty: $collector:expr;
        flush: $flush:expr, $flush_in:expr;
    ) => {
        use $module as epoch;

        /// Epochs: readers pin the current one, of the collector that all share.
        #[derive(Debug, Default)]
        pub(super) struct Epoch;

        /// By handles of the threads', without the look into thread-local storage.
        pub(super) struct Handles(epoch::Collector, $domain);

        impl Handles {
            pub(super) fn within(domain: $domain) -> Self {
                Self($collector(&domain), domain)
            }
        }

        impl Default for Handles {
            fn default() -> Self {
                Self::within(Default::default())
            }
        }

        /// Reads by a handle; also while the thread is pinned by it.
        pub(super) fn by_handle<const IS_NESTED: bool>() -> $crate::cases::loops::Loop {
            let place = Place(epoch::Atomic::new(1));
            $crate::cases::loops::Loop::new(move |batches| {
                let handle = epoch::default_collector().register();
                let _outer = IS_NESTED.then(|| handle.pin());
                let place = std::hint::black_box(&place);
                let read = || place.read(&handle.pin(), |word| *word);
                $crate::cases::loops::repeat(batches, read)
            })
        }

        /// A pointer that frees its object when it is dropped, which crossbeam's own does not.
        pub(super) struct Place<T>(epoch::Atomic<T>);

        impl<T> Place<T> {
            #[inline(always)]
            fn read<R>(&self, guard: &epoch::Guard, look: impl FnOnce(&T) -> R) -> R {
                // Acquire: pairs with the swap in `replace`; the object is seen as it was made.
                let object = self.0.load(std::sync::atomic::Ordering::Acquire, guard);
                // SAFETY: a place always points to an object, whose destruction waits for this
                // guard.
                look(unsafe { object.deref() })
            }

            #[inline(always)]
            fn replace(&self, guard: &epoch::Guard, value: T) {
                let new = epoch::Owned::new(value);
                // AcqRel: publishes the new object to the Acquire in `read`, and sees the old one
                // whole.
                let old = self.0.swap(new, std::sync::atomic::Ordering::AcqRel, guard);
                // SAFETY: the swap took the only pointer to the old object out of reach of new
                // readers.
                unsafe { guard.defer_destroy(old) };
            }
        }

        impl<T> Drop for Place<T> {
            fn drop(&mut self) {
                // SAFETY: by `&mut self` no thread reads or replaces any more, so the pointer is
                // ours alone, and it came from an `Owned`.
                drop(unsafe { std::mem::take(&mut self.0).into_owned() });
            }
        }

        $crate::serve::replace! {
            Epoch => Place<T>, ();
            place: |_, value| Place(epoch::Atomic::new(value));
            read: |_, _, place, look| place.read(&epoch::pin(), look);
            replace: |_, _, place, value| place.replace(&epoch::pin(), value);
            // Crossbeam's advances the epoch if no thread is behind, and frees a few bags of
            // garbage.
            flush: |_| {
                epoch::pin().flush();
                $flush();
            };
        }

        $crate::serve::replace! {
            Handles => Place<T>, epoch::LocalHandle;
            place: |_, value| Place(epoch::Atomic::new(value));
            thread: |handles| handles.0.register();
            read: |_, handle, place, look| place.read(&handle.pin(), look);
            replace: |_, handle, place, value| place.replace(&handle.pin(), value);
            flush: |handles| {
                handles.0.register().pin().flush();
                $flush_in(&handles.1);
            };
        }
    };
}
pub(super) use epochs;

// A pinned thread may need the CPU.
epochs! {
    crossbeam_epoch, in (): |(): &()| Collector::new();
    flush: std::thread::yield_now, |(): &()| std::thread::yield_now();
}

/// A collector with participants of its own.
impl Flavour for Collector {
    fn enrol(&self) -> Box<dyn Member + '_> {
        member(self.register(), synchronize, |handle, x, steps| {
            let _guard = handle.pin();
            chain(x, steps)
        })
    }
}

/// There is no such call: as a user would, it defers a function, and collects until that has run.
fn synchronize(handle: &mut LocalHandle) {
    let is_over = Arc::new(AtomicBool::new(false));
    let inside = Arc::clone(&is_over);
    // Release and Acquire: the thread that runs it has waited for the readers.
    handle.pin().defer(move || inside.store(true, Ordering::Release));
    while !is_over.load(Ordering::Acquire) {
        handle.pin().flush();
    }
}
