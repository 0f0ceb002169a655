//! seize: reclamation by batches that are handed to the active threads (Hyaline).

use std::sync::atomic::{AtomicPtr, Ordering};

use seize::{Collector, Guard, reclaim};

use super::Design;
use crate::run::Ready;
use crate::value::Value;
use crate::workload::{Config, PerKey, Whole};

pub(super) const TABLE: Design = Design { make: Ready::<PerKey<Slot>>::boxed, ..CONFIG };

pub(super) const CONFIG: Design = Design {
    name: "seize",
    family: "epoch",
    idea: "batches of replaced values are handed to all active readers; the last one frees them",
    reader_cost: "a locked swap when the guard is left, to collect the batches handed over",
    limits: "readers run destructors; batches of ended threads strand; memory is not bounded",
    ours: false,
    make: Ready::<Whole<Slot>>::boxed,
};

#[derive(Debug)]
struct Slot(AtomicPtr<Value>);

impl Config for Slot {
    type Domain = Collector;
    type Thread<'a> = ();

    fn new(value: Value) -> Self {
        Self(AtomicPtr::new(Box::into_raw(Box::new(value))))
    }

    fn thread(_domain: &Collector) {}

    #[inline]
    fn read<R>(&self, domain: &Collector, _thread: &mut (), look: impl FnOnce(&Value) -> R) -> R {
        let guard = domain.enter();
        // Acquire: pairs with the swap in `update`; the value is seen as it was made.
        let value = guard.protect(&self.0, Ordering::Acquire);
        // SAFETY: a slot always points to a value, and one that was loaded through the guard is
        // not reclaimed before the guard is dropped: `update` retires it to the same collector.
        look(unsafe { &*value })
    }

    #[inline]
    fn update(&self, domain: &Collector, _thread: &mut (), value: Value) {
        let new = Box::into_raw(Box::new(value));
        // AcqRel: publishes the new value to the Acquire in `read`, and sees the old one whole.
        let old = self.0.swap(new, Ordering::AcqRel);
        // SAFETY: the swap took the only pointer to the old value out of reach of new readers, no
        // other swap can have got the same one, and it came from a `Box`.
        unsafe { domain.retire(old, reclaim::boxed) };
    }

    /// Only this thread's own batch can be asked for; those of ended threads wait until their
    /// thread number is used again, or for the end of the collector.
    fn flush(domain: &Collector) {
        domain.enter().flush();
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // SAFETY: by `&mut self` nobody reads or updates any more, so the pointer is ours alone,
        // and it came from a `Box`.
        drop(unsafe { Box::from_raw(*self.0.get_mut()) });
    }
}
