//! The tools on the CPU's own words: counters, a reference count, and a lock for readers.

use std::hint::black_box;

use quiescence::sync::{BigRef, Counter, ExactCounter, LimitCounter, LocalGlobalLock};

use crate::cases::BATCH;
use crate::cases::loops::{Loop, repeat};
use crate::shapes::{Counting, Limiting, counting};

/// A counter with a limit. It is asked for its value only after each part: that folds it, and the
/// other threads' next additions are slow.
pub(super) fn count_limited() -> Loop {
    let counter = <LimitCounter as Counting>::new();
    Loop::new(move |batches| {
        let counter = black_box(&counter);
        let elapsed = repeat(batches, || u64::from(counter.try_add(1)));
        assert!(counter.value() >= batches * BATCH, "{batches} batches were counted");
        elapsed
    })
}

pub(super) fn reference() -> Loop {
    Loop::of(BigRef::new(1), |shared| *shared.get())
}

pub(super) fn section() -> Loop {
    Loop::of(LocalGlobalLock::new(()), |lock| {
        drop(lock.read());
        1
    })
}

counting! {
    Counter, exact: false,
        add: |counter| counter.add(1),
        sum: |counter| counter.sum().cast_unsigned();
    ExactCounter, exact: true,
        add: |counter| counter.add(1),
        sum: |counter| counter.sum().cast_unsigned();
}

/// Up to a limit that is far away.
impl Counting for LimitCounter {
    const EXACT: bool = true;

    fn new() -> Self {
        Self::new(1 << 62)
    }

    #[inline(always)]
    fn add(&self) {
        assert!(self.try_add(1), "the limit is far away");
    }

    #[inline]
    fn sum(&self) -> u64 {
        self.value()
    }
}

impl Limiting for LimitCounter {
    fn up_to(limit: u64) -> Self {
        Self::new(limit)
    }

    #[inline]
    fn try_take(&self, _limit: u64) -> bool {
        self.try_add(1)
    }

    #[inline]
    fn give(&self) {
        self.sub(1);
    }
}
