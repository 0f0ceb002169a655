//! One operation in a loop, of all its rivals: for how long, in how many threads.

use std::time::Duration;

use super::rounds::{Case, Metric, Sample, Session};
use crate::Error;
use crate::cases::loops::Loop;
use crate::rivals::Rival;
use crate::statistics::median;

/// Time for one measurement of one rival.
const BUDGET: Duration = Duration::from_millis(20);
const BUDGET_QUICK: Duration = Duration::from_millis(4);

/// Operations from which their number for a budget is worked out.
const TRIAL: u64 = 1 << 14;

/// Nothing is faster than this; a trial that says so was disturbed.
const NS_MIN: f64 = 0.1;

/// The thread that works at the same time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Threads {
    /// So many, all of which do the same.
    Same(usize),
    /// One, and another one that does the opposite: writes, or reads.
    Beside,
}

/// Time for one measurement of one rival.
pub(crate) fn budget(quick: bool) -> Duration {
    if quick { BUDGET_QUICK } else { BUDGET }
}

/// The loop of a rival that is measured, if it has it.
pub(crate) type Of = fn(&Rival) -> Option<Loop>;

/// Measures these rivals, all of which have the loop, in interleaved rounds.
pub(crate) fn measure(
    (id, title, threads): (&'static str, &'static str, Threads),
    metrics: &'static [Metric],
    rivals: &[&'static Rival],
    of: Of,
    budget: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    let loops: Vec<(Loop, u64)> = rivals
        .iter()
        .filter_map(|rival| of(rival))
        .map(|looped| {
            // The middle one of three: one may have been interrupted.
            let mut trials = [(); 3].map(|()| sample(looped, threads, TRIAL).values[0]);
            (looped, times_for(budget, median(&mut trials)))
        })
        .collect();
    let case = Case::of(id, title, metrics, rivals);
    let planted_percent = session.planted_percent;
    session.interleave(case, budget, |number| {
        let (looped, times) = loops[number];
        planted(times, planted_percent, |times| sample(looped, threads, times))
    })
}

/// Measures so many per cent more operations than `times`, and divides their time by `times`.
fn planted(times: u64, percent: f64, measure: impl FnOnce(u64) -> Sample) -> Sample {
    let done = times + (times as f64 * percent / 100.0) as u64;
    let mut sample = measure(done);
    for value in &mut sample.values {
        *value *= done as f64 / times as f64;
    }
    sample
}

fn sample(looped: Loop, threads: Threads, times: u64) -> Sample {
    match threads {
        Threads::Same(threads) => {
            Sample { values: vec![looped.measure(threads, times)], readers_share: 1.0 }
        }
        Threads::Beside => {
            let seen = looped.measure_beside(times);
            Sample { values: vec![seen.ns], readers_share: seen.other_share }
        }
    }
}

fn times_for(budget: Duration, ns: f64) -> u64 {
    ((budget.as_nanos() as f64 / ns.max(NS_MIN)) as u64).max(TRIAL)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_is_planted_is_done_and_not_counted() {
        for (percent, done, ns) in [(0.0, 1_000, 10.0), (3.0, 1_030, 10.3)] {
            let sample = planted(1_000, percent, |times| {
                assert_eq!(times, done);
                Sample { values: vec![10.0], readers_share: 1.0 }
            });
            assert!((sample.values[0] - ns).abs() < 1e-9, "{sample:?}");
        }
    }

    #[test]
    fn a_budget_is_used_up_and_a_small_one_still_measures() {
        assert_eq!(times_for(Duration::from_millis(1), 2.0), 500_000);
        assert_eq!(times_for(Duration::ZERO, 2.0), TRIAL);
        assert_eq!(times_for(Duration::from_millis(1), 0.0), 10_000_000);
        assert_eq!(times_for(Duration::from_millis(1), f64::INFINITY), TRIAL);
    }
}
