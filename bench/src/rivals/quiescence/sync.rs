//! The tools on the CPU's own words: counters, a reference count, and a lock for readers.

use quiescence::sync::{BigRef, Counter, ExactCounter, LimitCounter, LocalGlobalLock};

use crate::cases::loops::Loop;
use crate::shapes::{Counting, Limiting, counting};

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
    const EXACT: bool = false;

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
