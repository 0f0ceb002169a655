//! `rcu bench read`: enter a section, load the pointer, read its word, leave.

use std::time::Duration;

use rivals::bench::read::{ReadRival, rivals};

use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Bench, Options};
use crate::exit::Failure;
use crate::statistics::median;

const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];

/// Threads that read at the same time.
const CASES: [(&str, &str, usize); 2] =
    [("read/1-thread", "one thread", 1), ("read/2-threads", "two threads", 2)];

/// Time for one measurement of one rival.
const BUDGET: Duration = Duration::from_millis(20);
const BUDGET_QUICK: Duration = Duration::from_millis(4);

/// Reads from which the number of reads for a budget is worked out.
const TRIAL: u64 = 1 << 14;

/// No read is faster than this; a trial that says so was disturbed.
const NS_MIN: f64 = 0.1;

pub(super) fn prepare(options: &Options) -> Result<Bench, Failure> {
    let (rivals, base) =
        options.choose(rivals(), |rival| rival.name, &["liburcu-memb", "quiescence"])?;
    let budget = if options.quick { BUDGET_QUICK } else { BUDGET };
    Ok(Bench {
        name: "read",
        base,
        duration: budget * (options.rounds() * (CASES.len() * rivals.len()) as u32),
        measure: Box::new(move |session| {
            let cases = CASES.iter().map(|case| measure(*case, &rivals, budget, session));
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

fn measure(
    (id, title, threads): (&'static str, &'static str, usize),
    rivals: &[&ReadRival],
    budget: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Failure> {
    let reads: Vec<u64> = rivals
        .iter()
        .map(|rival| {
            // The middle one of three: one may have been interrupted.
            let mut trials = [(); 3].map(|()| rival.measure(threads, TRIAL));
            reads_for(budget, median(&mut trials))
        })
        .collect();
    let names = rivals.iter().map(|rival| (rival.name, rival.ours));
    let case = Case::new(id, title, METRICS, names);
    session.interleave(case, budget, |number| Sample {
        values: vec![rivals[number].measure(threads, reads[number])],
        readers_share: 1.0,
    })
}

fn reads_for(budget: Duration, ns_per_read: f64) -> u64 {
    ((budget.as_nanos() as f64 / ns_per_read.max(NS_MIN)) as u64).max(TRIAL)
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(super) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let is_known = CASES.iter().any(|(id, ..)| *id == case);
    is_known.then(|| (METRICS, rivals().iter().map(|rival| rival.name).collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_is_used_up_and_a_small_one_still_reads() {
        assert_eq!(reads_for(Duration::from_millis(1), 2.0), 500_000);
        assert_eq!(reads_for(Duration::ZERO, 2.0), TRIAL);
        assert_eq!(reads_for(Duration::from_millis(1), 0.0), 10_000_000);
        assert_eq!(reads_for(Duration::from_millis(1), f64::INFINITY), TRIAL);
    }
}
