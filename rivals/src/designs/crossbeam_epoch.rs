//! crossbeam-epoch: epoch-based reclamation, with the collector that all its users share.

use std::sync::atomic::Ordering;

use crossbeam_epoch::{Atomic, Owned};

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Config, PerKey, Whole};

pub(super) const TABLE: Design = Design { make: Ready::<PerKey<Slot>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "crossbeam-epoch",
    family: "epoch",
    idea: "readers pin an epoch; what is replaced is freed two epochs later",
    reader_cost: "a full fence when the epoch is pinned, and collection at every 128th pin",
    limits: "tail latency: readers run destructors; memory is not bounded when a reader stalls",
    ours: false,
    make: Ready::<Whole<Slot>>::boxed,
};

#[derive(Debug)]
struct Slot(Atomic<Value>);

impl Config for Slot {
    type Domain = ();
    type Thread<'a> = ();

    fn new(value: Value) -> Self {
        Self(Atomic::new(value))
    }

    fn thread(_domain: &()) {}

    #[inline]
    fn read<R>(&self, _domain: &(), _thread: &mut (), look: impl FnOnce(&Value) -> R) -> R {
        let guard = crossbeam_epoch::pin();
        // Acquire: pairs with the swap in `update`; the value is seen as it was made.
        let value = self.0.load(Ordering::Acquire, &guard);
        // SAFETY: a slot always points to a value, and one that was current while this thread was
        // pinned is not destroyed before it is unpinned: `update` defers the destruction.
        look(unsafe { value.deref() })
    }

    #[inline]
    fn update(&self, _domain: &(), _thread: &mut (), value: Value) {
        let guard = crossbeam_epoch::pin();
        // AcqRel: publishes the new value to the Acquire in `read`, and sees the old one whole.
        let old = self.0.swap(Owned::new(value), Ordering::AcqRel, &guard);
        // SAFETY: the swap took the only pointer to the old value out of reach of new readers,
        // and no other swap can have got the same one.
        unsafe { guard.defer_destroy(old) };
    }

    /// Every call advances the epoch if nobody is behind, and frees a few bags of garbage.
    fn flush(_domain: &()) {
        crossbeam_epoch::pin().flush();
        // Somebody may be pinned who needs the CPU.
        std::thread::yield_now();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: by `&mut self` nobody reads or updates any more, so the pointer is ours alone,
        // and it came from an `Owned`.
        drop(unsafe { std::mem::take(&mut self.0).into_owned() });
    }
}
