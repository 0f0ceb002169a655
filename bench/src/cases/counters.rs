//! Adding one to a counter that many threads add to, now and then read.
//!
//! `atomic-own` is the measure: an atomic addition to a word that no other thread touches.

use std::hint::black_box;
use std::time::Duration;

use super::BATCH;
use super::loops::{Loop, repeat};
use crate::shapes::Counting;

/// Additions to a counter of all threads.
pub(crate) fn counts<C: Counting>() -> Loop {
    let counter = C::new();
    Loop::new(move |batches| counted(batches, &counter))
}

/// Adds so many ones and checks that all of them are there at least: others add to the same
/// counter.
#[inline(always)]
pub(crate) fn counted<C: Counting>(batches: u64, counter: &C) -> Duration {
    let counter = black_box(counter);
    let before = counter.sum();
    let elapsed = repeat(batches, || {
        counter.add();
        1
    });
    let added = counter.sum().wrapping_sub(before);
    assert!(added >= batches * BATCH, "{added} of {batches} batches were counted");
    elapsed
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    struct Forgets(AtomicU64);

    impl Counting for Forgets {
        const EXACT: bool = false;

        fn new() -> Self {
            Self(0.into())
        }

        fn add(&self) {
            self.0.store(1, Ordering::Relaxed);
        }

        fn sum(&self) -> u64 {
            self.0.load(Ordering::Relaxed)
        }
    }

    #[test]
    #[should_panic(expected = "were counted")]
    fn a_counter_that_loses_some_is_found_out() {
        counted(1, &Forgets::new());
    }
}
