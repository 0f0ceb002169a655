//! A counter that is one atomic word: a thread's own, which is the measure, or one for all.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::Rival;
use crate::advise::{Counting, Limiting};
use crate::cases::counters::counted;
use crate::cases::loops::Looped;

pub(super) const RIVALS: &[Rival] = &[
    Rival::new("atomic-own").times(Looped::Count, count_own),
    Rival::new("atomic-shared")
        .counter::<CachePadded<AtomicU64>>()
        .limiter::<UpTo>()
        .times(Looped::Count, count_shared),
];

impl Counting for CachePadded<AtomicU64> {
    const EXACT: bool = true;

    fn new() -> Self {
        Self::default()
    }

    #[inline]
    fn add(&self) {
        // Relaxed, here and below: a count orders nothing.
        self.fetch_add(1, Ordering::Relaxed);
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.load(Ordering::Relaxed)
    }
}

/// One word, changed by a compare-and-swap that looks at the limit.
#[derive(Debug)]
struct UpTo {
    count: CachePadded<AtomicU64>,
    limit: u64,
}

impl Limiting for UpTo {
    fn new(limit: u64) -> Self {
        Self { count: CachePadded::default(), limit }
    }

    #[inline]
    fn try_take(&self) -> bool {
        let next = |count: u64| (count < self.limit).then_some(count + 1);
        self.count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    #[inline]
    fn give(&self) {
        self.count.fetch_sub(1, Ordering::Relaxed);
    }

    #[inline]
    fn value(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

/// A word of the calling thread's own, added to as if it were shared.
fn count_own(batches: u64) -> Duration {
    let own = CachePadded::new(AtomicU64::new(0));
    let word = black_box(&own);
    let add = || {
        word.fetch_add(1, Ordering::Relaxed);
    };
    counted(batches, add, || word.load(Ordering::Relaxed))
}

/// One word for all.
fn count_shared(batches: u64) -> Duration {
    static WORD: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
    let word = black_box(&WORD);
    let add = || {
        word.fetch_add(1, Ordering::Relaxed);
    };
    counted(batches, add, || word.load(Ordering::Relaxed))
}
