//! A counter that is one atomic word: a thread's own, which is the measure, or one for all.

use std::sync::atomic::{AtomicU64, Ordering};

use crossbeam_utils::CachePadded;

use super::Rival;
use crate::cases::loops::{Loop, Looped, counted, counts};
use crate::shapes::{Limiting, counting};

pub(super) const RIVALS: &[Rival] = &[
    // A word of the calling thread's own, added to as if it were shared.
    Rival::new("atomic-own").times(Looped::Count, || {
        Loop::new(|batches| counted(batches, &CachePadded::<AtomicU64>::default()))
    }),
    Rival::new("atomic-shared")
        .counter::<CachePadded<AtomicU64>>()
        .limiter::<CachePadded<AtomicU64>>()
        .times(Looped::Count, counts::<CachePadded<AtomicU64>>),
];

counting! {
    // Relaxed, here and below: a count orders nothing.
    CachePadded<AtomicU64>, exact: true,
        add: |count| count.fetch_add(1, Ordering::Relaxed),
        sum: |count| count.load(Ordering::Relaxed);
    // Beside another one, for what that costs.
    AtomicU64, exact: true,
        add: |count| count.fetch_add(1, Ordering::Relaxed),
        sum: |count| count.load(Ordering::Relaxed);
}

/// Changed by a compare-and-swap that looks at the limit.
impl Limiting for CachePadded<AtomicU64> {
    #[inline]
    fn try_take(&self, limit: u64) -> bool {
        let next = |count: u64| (count < limit).then_some(count + 1);
        self.try_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }

    #[inline]
    fn give(&self) {
        self.fetch_sub(1, Ordering::Relaxed);
    }
}
