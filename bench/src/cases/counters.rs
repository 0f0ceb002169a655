//! Adding one to a counter that many threads add to, now and then read.
//!
//! `atomic-own` is the measure: an atomic addition to a word that no other thread touches.

use std::time::Duration;

use super::BATCH;
use super::loops::repeat;

/// Adds so many ones by `add` and checks, by `sum`, that all of them are there at least: others add
/// to the same counter.
#[inline(always)]
pub(crate) fn counted(batches: u64, add: impl Fn(), sum: impl Fn() -> u64) -> Duration {
    let before = sum();
    let elapsed = repeat(batches, || {
        add();
        1
    });
    let added = sum().wrapping_sub(before);
    assert!(added >= batches * BATCH, "{added} of {batches} batches were counted");
    elapsed
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    #[should_panic(expected = "were counted")]
    fn a_counter_that_loses_some_is_found_out() {
        let word = AtomicU64::new(0);
        counted(1, || word.store(1, Ordering::Relaxed), || word.load(Ordering::Relaxed));
    }
}
