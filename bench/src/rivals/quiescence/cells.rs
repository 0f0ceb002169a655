//! Values that are read by one restartable sequence, cells with an `Arc` in them, and hazard
//! pointers.
//!
//! Where others wait for a grace period, an updater of a snapshot replaces the value, which is to
//! wait for one. What a reader of the others does in its section it does here with what it has
//! loaded.

use std::hint::black_box;
use std::sync::Arc;

use quiescence::ArcCell;
use quiescence::cell::{Cache, ExactCell, Snapshot};
use quiescence::hazard::{self, HazardPointer};
use quiescence::sync::{Latch, SeqLock};

use crate::cases::loops::{Loop, SLOT, timed};
use crate::cases::wait::{Flavour, Member, chain, member};
use crate::serve::{arcs, copied};

copied! {
    SeqLock::new, |lock| lock.read(), |lock, words| lock.write(words);
    Latch::new, |latch| latch.read(), |latch, words| latch.write(words);
    Snapshot::new, |snapshot| snapshot.load(), |snapshot, words| snapshot.store(words);
}

arcs!(InCell => ArcCell, load_full, flush: hazard::barrier());

/// Whose replaced `Arc` goes with its last guard.
type CountedCell<T> = ExactCell<Arc<T>>;

arcs!(InExactCell => CountedCell, load_full);

pub(super) fn cache() -> Loop {
    let cell = ArcCell::from_pointee(1);
    Loop::new(move |batches| {
        let mut cache = Cache::new(black_box(&cell));
        timed(batches, &mut cache, |cache| **cache.load(), |_| {})
    })
}

/// A hazard pointer that stays.
pub(super) fn protect() -> Loop {
    Loop::new(|batches| {
        let place = black_box(&SLOT);
        let once = |holder: &mut HazardPointer| {
            // SAFETY: the slot points to a static word, always.
            *unsafe { holder.protect(place) }.expect("a place is never empty")
        };
        timed(batches, &mut HazardPointer::new(), once, |_| {})
    })
}

/// Four words.
impl Flavour for Snapshot<[u64; 4]> {
    fn enrol(&self) -> Box<dyn Member + '_> {
        member((), |()| self.store([1; 4]), |(), x, steps| chain(x | self.load()[0], steps))
    }
}
