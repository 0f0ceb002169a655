//! A counter that is one atomic word: a thread's own, which is the measure, or one for all.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crossbeam_utils::CachePadded;

use super::Rival;
use crate::cases::counters::counted;
use crate::serve::Count;

pub(super) const RIVALS: &[Rival] =
    &[Rival::new("atomic-own").count::<Own>(), Rival::new("atomic-shared").count::<Shared>()];

/// A word of the calling thread's own, added to as if it were shared.
struct Own;

impl Count for Own {
    fn count(batches: u64) -> Duration {
        let own = CachePadded::new(AtomicU64::new(0));
        let word = black_box(&own);
        let add = || {
            word.fetch_add(1, Ordering::Relaxed);
        };
        counted(batches, add, || word.load(Ordering::Relaxed))
    }
}

/// One word for all.
struct Shared;

impl Count for Shared {
    fn count(batches: u64) -> Duration {
        static WORD: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
        let word = black_box(&WORD);
        let add = || {
            word.fetch_add(1, Ordering::Relaxed);
        };
        counted(batches, add, || word.load(Ordering::Relaxed))
    }
}
