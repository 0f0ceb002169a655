//! What it costs without any protection: the measure for all others, and no design to use.

use std::hint::black_box;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use super::Rival;
use crate::cases::loops::{Loop, Looped, SLOT, repeat, words};
use crate::serve::Copied;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("plain-load").times(Looped::Read, read).cell::<Plain>(),
    Rival::new("arc-clone").times(Looped::Arc, arc_clone).times(Looped::Reference, arc_clone),
];

/// A load of a pointer to something that is never freed.
fn read() -> Loop {
    Loop::new(|batches| {
        let slot = black_box(&SLOT);
        repeat(batches, || {
            let word = slot.load(Ordering::Acquire);
            // SAFETY: the slot points to a static word, always.
            unsafe { *word }
        })
    })
}

/// Nothing is ever written again, so nothing has to be waited for.
static FIXED: [[u64; 4]; 2] = [words(0), words(1)];

/// A pointer to one of the two, by the parity of the first word.
struct Plain(AtomicPtr<[u64; 4]>);

impl Copied<[u64; 4]> for Plain {
    fn new(words: [u64; 4]) -> Self {
        let plain = Self(AtomicPtr::default());
        plain.write(words);
        plain
    }

    #[inline(always)]
    fn read(&self) -> [u64; 4] {
        // Acquire: pairs with the Release in `write`, as it would for words that are written.
        let words = self.0.load(Ordering::Acquire);
        // SAFETY: it points to one of the two, which are static and never written.
        unsafe { *words }
    }

    #[inline(always)]
    fn write(&self, words: [u64; 4]) {
        let words = &raw const FIXED[(words[0] % 2) as usize];
        // Release: pairs with the Acquire in `read`.
        self.0.store(words.cast_mut(), Ordering::Release);
    }
}

/// The bare `Arc`, cloned and dropped.
fn arc_clone() -> Loop {
    // Or the compiler takes the count up and down at once, and so not at all.
    Loop::of(Arc::new(1), |arc| *black_box(Arc::clone(arc)))
}
