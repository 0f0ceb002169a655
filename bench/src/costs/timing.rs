//! How a cost is timed: batches long enough for the clock, many of them, the median kept.

use std::time::{Duration, Instant};

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::statistics::Spread;

/// A batch lasts about this long: thousands of steps of the clock, and short enough that most
/// batches meet no interrupt.
const BATCH: Duration = Duration::from_micros(100);
/// Batches enough for quartiles; never fewer, however slow the machine.
const BATCHES_MIN: usize = 5;

/// Times `batch(n)`, which does something `n` times, for about `budget`; nanoseconds for one time.
///
/// The quartiles are those of the time that went by, not of the batches: where a neighbour stops
/// for a moment, as a reader that loses its CPU does, batches are short and many.
pub(super) fn time(budget: Duration, mut batch: impl FnMut(u64)) -> Spread {
    let count = calibrate(&mut batch);
    let mut samples = Vec::new();
    let start = Instant::now();
    while samples.len() < BATCHES_MIN || start.elapsed() < budget {
        let before = Instant::now();
        batch(count);
        samples.push(before.elapsed());
    }
    let [low, median, high] =
        quartiles_of_time(&mut samples).map(|batch| batch.as_nanos() as f64 / count as f64);
    Spread { median, low, high }
}

/// The lengths of the batches that were under way when a quarter, a half and three quarters of all
/// their time had gone by, had they come in the order of their lengths.
fn quartiles_of_time(batches: &mut [Duration]) -> [Duration; 3] {
    batches.sort_unstable();
    let all: Duration = batches.iter().sum();
    [1, 2, 3].map(|quarter| {
        let mut before = Duration::ZERO;
        let under_way = batches.iter().find(|batch| {
            before += **batch;
            4 * before >= quarter * all
        });
        under_way.or(batches.last()).copied().unwrap_or_default()
    })
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
    fn a_moment_of_many_short_batches_is_a_moment() {
        let us = Duration::from_micros;
        let mut batches = [vec![us(150); 500], vec![us(5); 1_000]].concat();
        assert_eq!(quartiles_of_time(&mut batches), [us(150); 3]);
        let mut even = [vec![us(10); 6], vec![us(20); 9]].concat();
        assert_eq!(quartiles_of_time(&mut even), [us(10), us(20), us(20)]);
        assert_eq!(quartiles_of_time(&mut []), [Duration::ZERO; 3]);
    }

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
