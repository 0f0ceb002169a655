//! The tools on the CPU's own words: counters, a reference count, and a lock for readers.

use std::hint::black_box;

use quiescence::sync::{BigRef, Counter, ExactCounter, LimitCounter, LocalGlobalLock};

use crate::cases::BATCH;
use crate::cases::loops::{Loop, repeat};
use crate::shapes::{Limiting, counting};

/// A counter that may not exceed a limit, which is far away.
pub(super) fn count_limited() -> Loop {
    let counter = LimitCounter::new(1 << 62);
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

    #[inline]
    fn value(&self) -> u64 {
        self.value()
    }
}
