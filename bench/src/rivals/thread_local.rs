//! The crate `thread_local`: a word for each thread, which only that one writes. It is how cheap a
//! counter could be, for those who can give each thread a word for good.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;
use thread_local::ThreadLocal;

use super::Rival;
use crate::advise::Counting;
use crate::cases::counters::counted;
use crate::cases::loops::Looped;

pub(super) const RIVALS: &[Rival] = &[Rival::new("thread-local")
    .counter::<ThreadLocal<CachePadded<AtomicU64>>>()
    .times(Looped::Count, count)];

impl Counting for ThreadLocal<CachePadded<AtomicU64>> {
    const EXACT: bool = false;

    fn new() -> Self {
        Self::new()
    }

    #[inline]
    fn add(&self) {
        let word = self.get_or_default();
        // Relaxed, as the loads in the sum: a count that orders nothing.
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.iter().map(|word| word.load(Ordering::Relaxed)).sum()
    }
}

fn count(batches: u64) -> Duration {
    static WORDS: ThreadLocal<CachePadded<AtomicU64>> = ThreadLocal::new();
    let words = black_box(&WORDS);
    let add = || {
        let word = words.get_or_default();
        // Relaxed, as the loads in the sum: a count that orders nothing.
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    };
    counted(batches, add, || words.iter().map(|word| word.load(Ordering::Relaxed)).sum())
}
