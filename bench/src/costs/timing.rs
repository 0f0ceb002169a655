//! How a cost is timed: batches long enough for the clock, many of them, the median kept.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::statistics::{Spread, spread};

/// A batch lasts about this long: thousands of steps of the clock, and short enough that most
/// batches meet no interrupt.
const BATCH: Duration = Duration::from_micros(100);
/// Batches enough for quartiles; never fewer, however slow the machine.
const BATCHES_MIN: usize = 5;

/// Times `batch(n)`, which does something `n` times, for about `budget`; nanoseconds for one time.
pub(super) fn time(budget: Duration, mut batch: impl FnMut(u64)) -> Spread {
    let count = calibrate(&mut batch);
    let mut samples = Vec::new();
    let start = Instant::now();
    while samples.len() < BATCHES_MIN || start.elapsed() < budget {
        let before = Instant::now();
        batch(count);
        samples.push(before.elapsed().as_nanos() as f64 / count as f64);
    }
    spread(&samples)
}

/// How many times make a batch. Doubling also warms caches, branch predictors and the clock rate.
fn calibrate(batch: &mut impl FnMut(u64)) -> u64 {
    let mut count = 1;
    loop {
        let before = Instant::now();
        batch(count);
        if before.elapsed() >= BATCH || count >= 1 << 30 {
            return count;
        }
        count *= 2;
    }
}

/// Keeps the calling thread on one CPU. Where that is forbidden the figures are only noisier, so
/// it is not an error.
pub(super) fn pin(cpu: usize) {
    let mut set = CpuSet::new();
    set.set(cpu);
    let _ = sched_setaffinity(None, &set);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cost_is_that_of_one_time_not_of_a_batch() {
        let mut largest = 0;
        let cost = time(Duration::ZERO, |count| {
            largest = largest.max(count);
            for step in 0..count {
                std::hint::black_box(step);
            }
        });
        assert!(largest > 1, "one step of a loop is no batch");
        assert!(cost.median > 0.0 && cost.low <= cost.median && cost.median <= cost.high);
    }
}
