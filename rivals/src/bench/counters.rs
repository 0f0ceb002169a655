//! Adding one to a counter that many threads add to, now and then read.
//!
//! `atomic-own` is the measure: an atomic addition to a word that nobody else touches. `thread-local`
//! is how cheap it could be, for those who can give each thread a word for good.

use std::hint::black_box;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use contatori::counters::unsigned::Unsigned;
use crossbeam_utils::CachePadded;
use quiescence::sync::{Counter, ExactCounter, LimitCounter};
use thread_local::ThreadLocal;

use super::single::{Single, repeat};

/// Everything that is compiled in.
pub fn rivals() -> &'static [Single] {
    &RIVALS
}

static RIVALS: [Single; 7] = [
    Single::ours("quiescence", counter),
    Single::ours("quiescence-exact", exact_counter),
    Single::ours("quiescence-limit", limit_counter),
    Single::rival("atomic-own", atomic_own),
    Single::rival("atomic-shared", atomic_shared),
    Single::rival("contatori", contatori),
    Single::rival("thread-local", thread_local),
];

/// Adds so many ones by `add` and checks, by `sum`, that all of them are there at least: others add to
/// the same counter.
#[inline(always)]
fn counted(batches: u64, add: impl Fn(), sum: impl Fn() -> u64) -> Duration {
    let before = sum();
    let elapsed = repeat(batches, || {
        add();
        1
    });
    let added = sum().wrapping_sub(before);
    assert!(added >= batches * super::BATCH, "{added} of {batches} batches were counted");
    elapsed
}

fn counter(batches: u64) -> Duration {
    static COUNTER: Counter = Counter::new();
    let counter = black_box(&COUNTER);
    counted(batches, || counter.add(1), || counter.sum() as u64)
}

fn exact_counter(batches: u64) -> Duration {
    static COUNTER: ExactCounter = ExactCounter::new();
    let counter = black_box(&COUNTER);
    counted(batches, || counter.add(1), || counter.sum() as u64)
}

/// Far from its limit.
fn limit_counter(batches: u64) -> Duration {
    static COUNTER: LimitCounter = LimitCounter::new(1 << 62);
    let counter = black_box(&COUNTER);
    let elapsed = repeat(batches, || u64::from(counter.try_add(1)));
    // To know its value is dear: once, and not of the loop.
    assert!(counter.value() >= batches * super::BATCH, "{batches} batches were counted");
    elapsed
}

/// A word of the calling thread's own, added to as if it were shared.
fn atomic_own(batches: u64) -> Duration {
    let own = CachePadded::new(AtomicU64::new(0));
    let word = black_box(&own);
    let add = || {
        word.fetch_add(1, Ordering::Relaxed);
    };
    counted(batches, add, || word.load(Ordering::Relaxed))
}

/// One word for all.
fn atomic_shared(batches: u64) -> Duration {
    static WORD: CachePadded<AtomicU64> = CachePadded::new(AtomicU64::new(0));
    let word = black_box(&WORD);
    let add = || {
        word.fetch_add(1, Ordering::Relaxed);
    };
    counted(batches, add, || word.load(Ordering::Relaxed))
}

/// The crate contatori: atomic additions, to one of a fixed number of words by thread.
fn contatori(batches: u64) -> Duration {
    use contatori::counters::Observable;
    static COUNTER: Unsigned = Unsigned::new();
    let counter = black_box(&COUNTER);
    let sum = || match counter.value() {
        contatori::counters::CounterValue::Unsigned(sum) => sum,
        other => panic!("an unsigned counter says {other:?}"),
    };
    counted(batches, || counter.add(1), sum)
}

/// The crate `thread_local`: a word for each thread, which only that one writes.
fn thread_local(batches: u64) -> Duration {
    static WORDS: ThreadLocal<CachePadded<AtomicU64>> = ThreadLocal::new();
    let words = black_box(&WORDS);
    let add = || {
        let word = words.get_or_default();
        word.store(word.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    };
    counted(batches, add, || words.iter().map(|word| word.load(Ordering::Relaxed)).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::single::tests::all_work;

    #[test]
    fn no_counter_loses_any() {
        all_work(rivals());
    }

    #[test]
    #[should_panic(expected = "were counted")]
    fn a_counter_that_loses_some_is_found_out() {
        let word = AtomicU64::new(0);
        counted(1, || word.store(1, Ordering::Relaxed), || word.load(Ordering::Relaxed));
    }
}
