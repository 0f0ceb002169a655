//! What it costs to queue a callback, and to wait until one has run.
//!
//! Callbacks are queued in bursts, while a reader stays in its section: so no grace period ends and
//! no callback runs within a burst. Then the reader leaves, and the burst is run, neither of which
//! is measured. A callback has two words and adds them to a sum, so that it can be seen that all
//! have run.

use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::object::in_turn;
use super::replace::{Limit, Make, Site, while_held};
use crate::sample::{Sample, alone};
use crate::statistics::spread;

/// Callbacks of a burst: few enough that no thread's queue is at a limit.
pub(crate) const BURST: u64 = 1024;

/// What makes callbacks, and the object whose reader holds them up.
pub(crate) type Queue = (fn() -> Box<dyn Caller>, Make);

/// A thread that queues callbacks.
pub(crate) trait Caller {
    /// Queues so many, at most [`BURST`], all of which have run before the next.
    fn call(&mut self, count: u64);
    /// Waits until all that were queued have run; or helps as far as it can.
    fn finish(&mut self);
    /// How many have run since the process began, in whole words of theirs.
    fn sum(&self) -> u64;
}

/// The two words of a callback; their sum is 1.
const WORDS: (u64, u64) = (u64::MAX - 1, 3);

/// What the callbacks on this side of the language border have added up.
static SUM: AtomicU64 = AtomicU64::new(0);

/// The closure that all of them queue.
#[inline(always)]
pub(crate) fn callback() -> impl FnOnce() + Send + 'static {
    let (a, b) = std::hint::black_box(WORDS);
    move || {
        // Relaxed: a count that orders nothing.
        SUM.fetch_add(a.wrapping_add(b), Ordering::Relaxed);
    }
}

/// Queues [`callback`] by the first, and finishes by the second.
pub(crate) struct Closures<C, F>(pub(crate) C, pub(crate) F);

impl<C: Fn(), F: Fn()> Caller for Closures<C, F> {
    fn call(&mut self, count: u64) {
        (0..count).for_each(|_| self.0());
    }

    fn finish(&mut self) {
        self.1();
    }

    fn sum(&self) -> u64 {
        // Relaxed: a count that orders nothing.
        SUM.load(Ordering::Relaxed)
    }
}

/// Attempts to get callbacks run, for those who cannot wait for them.
const PATIENCE: u32 = 10_000;

/// Nanoseconds to queue a callback, the median of so many bursts.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If a callback has run twice, or within the burst.
pub(crate) fn measure_call(queue: Queue, bursts: usize) -> Sample {
    median_ns(queue, bursts, BURST, |site, caller| {
        let before = caller.sum();
        let elapsed = while_held(site, |_release| {
            let begin = Instant::now();
            caller.call(BURST);
            let elapsed = begin.elapsed();
            assert_eq!(caller.sum(), before, "a callback ran too early");
            elapsed
        });
        run_all(caller, before + BURST);
        elapsed
    })
}

/// Nanoseconds until a barrier after one callback returns, the median of so many.
///
/// One measurement at a time in a process; others wait.
///
/// # Panics
/// If it returns before the callback has run.
pub(crate) fn measure_barrier(queue: Queue, times: usize) -> Sample {
    median_ns(queue, times, 1, |_, caller| {
        let before = caller.sum();
        caller.call(1);
        let begin = Instant::now();
        caller.finish();
        let elapsed = begin.elapsed();
        assert_eq!(caller.sum(), before + 1, "a barrier is one");
        elapsed
    })
}

/// The median of so many measurements, each of so many operations, in a thread of its own, after a
/// burst that does not count.
fn median_ns(
    (caller, site): Queue,
    times: usize,
    operations: u64,
    once: impl Fn(&dyn Site, &mut dyn Caller) -> Duration + Sync,
) -> Sample {
    in_turn(|| {
        let (site, mut caller) = (site(Limit::Usual), caller());
        let before = caller.sum();
        caller.call(BURST);
        run_all(&mut *caller, before + BURST);
        let ns = (0..times.max(1)).map(|_| once(&*site, &mut *caller).as_nanos() as f64);
        alone(spread(&ns.collect::<Vec<_>>()).median / operations as f64)
    })
}

fn run_all(caller: &mut dyn Caller, sum: u64) {
    for _ in 0..PATIENCE {
        caller.finish();
        if caller.sum() >= sum {
            break;
        }
        thread::yield_now();
    }
    assert_eq!(caller.sum(), sum, "each callback runs once");
}
