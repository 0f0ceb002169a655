//! The tools on the CPU's own words: counters, a reference count, and a lock for readers.

use std::hint::black_box;
use std::sync::LazyLock;
use std::time::Duration;

use quiescence::sync::{BigRef, Counter, ExactCounter, LimitCounter, LocalGlobalLock};

use crate::advise::{Counting, Limiting};
use crate::cases::BATCH;
use crate::cases::counters::counted;
use crate::cases::loops::repeat;

/// Far from its limit.
pub(super) fn count_limited(batches: u64) -> Duration {
    static COUNTER: LimitCounter = LimitCounter::new(1 << 62);
    let counter = black_box(&COUNTER);
    let elapsed = repeat(batches, || u64::from(counter.try_add(1)));
    // To know its value is dear: once, and not of the loop.
    assert!(counter.value() >= batches * BATCH, "{batches} batches were counted");
    elapsed
}

pub(super) fn reference(batches: u64) -> Duration {
    static SHARED: LazyLock<BigRef<u64>> = LazyLock::new(|| BigRef::new(1));
    let shared = black_box(&*SHARED);
    repeat(batches, || {
        let handle = shared.get();
        let word = *handle;
        drop(handle);
        word
    })
}

pub(super) fn section(batches: u64) -> Duration {
    static LOCK: LocalGlobalLock<()> = LocalGlobalLock::new(());
    let lock = black_box(&LOCK);
    repeat(batches, || {
        drop(lock.read());
        1
    })
}

/// Both have the same methods.
macro_rules! counting {
    ($($kind:ident, $count:ident, exact: $exact:literal;)*) => {$(
        pub(super) fn $count(batches: u64) -> Duration {
            static COUNTER: $kind = $kind::new();
            let counter = black_box(&COUNTER);
            counted(batches, || counter.add(1), || counter.sum().cast_unsigned())
        }

        impl Counting for $kind {
            const EXACT: bool = $exact;

            fn new() -> Self {
                Self::new()
            }

            #[inline]
            fn add(&self) {
                self.add(1);
            }

            #[inline]
            fn sum(&self) -> u64 {
                self.sum().cast_unsigned()
            }
        }
    )*};
}

counting! {
    Counter, count, exact: false;
    ExactCounter, count_exact, exact: true;
}

impl Limiting for LimitCounter {
    fn new(limit: u64) -> Self {
        Self::new(limit)
    }

    #[inline]
    fn try_take(&self) -> bool {
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
