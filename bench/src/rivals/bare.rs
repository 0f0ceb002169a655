//! What it costs without any protection: the measure for all others, and no design to use.

use std::hint::black_box;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::Rival;
use crate::cases::cells::{Words, sum, words};
use crate::cases::loops::{Looped, repeat, timed};
use crate::cases::read::SLOT;
use crate::serve::Cell;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("plain-load").times(Looped::Read, read).cell::<Load>(),
    Rival::new("arc-clone").times(Looped::Arc, arc_clone).times(Looped::Reference, arc_clone),
];

/// A load of a pointer to something that is never freed.
struct Load;

fn read(batches: u64) -> Duration {
    let slot = black_box(&SLOT);
    let read = |_: &mut ()| {
        let word = slot.load(Ordering::Acquire);
        // SAFETY: the slot points to a static word, always.
        unsafe { *word }
    };
    timed(batches, &mut (), read, |()| {})
}

/// Nothing is ever written again, so nothing has to be waited for.
static FIXED: [Words; 2] = [words(1), words(2)];
static PLAIN: AtomicPtr<Words> = AtomicPtr::new((&raw const FIXED[0]).cast_mut());

impl Cell for Load {
    fn load(batches: u64) -> Duration {
        let plain = black_box(&PLAIN);
        repeat(batches, || {
            // Acquire: pairs with the Release in `store`, as it would for words that are written.
            let words = plain.load(Ordering::Acquire);
            // SAFETY: it points to one of the two, which are static and never written.
            sum(unsafe { &*words })
        })
    }

    fn store(number: u64) {
        let words = &raw const FIXED[(number % 2) as usize];
        // Release: pairs with the Acquire in `load`.
        PLAIN.store(words.cast_mut(), Ordering::Release);
    }
}

/// The bare `Arc`, cloned and dropped.
fn arc_clone(batches: u64) -> Duration {
    static ARC: LazyLock<Arc<u64>> = LazyLock::new(|| Arc::new(1));
    let arc = black_box(&*ARC);
    // Or the compiler takes the count up and down at once, and so not at all.
    repeat(batches, || *black_box(Arc::clone(arc)))
}
