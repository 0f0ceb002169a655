//! `rcu bench read`: enter a section, load the pointer, read its word, leave.

use rivals::bench::read::rivals;

use super::loops::{self, Threads};
use super::rounds::{Metric, Unit};
use super::{Bench, Options};
use crate::exit::Failure;

const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];

/// Threads that read at the same time.
const CASES: [(&str, &str, Threads); 2] = [
    ("read/1-thread", "one thread", Threads::Same(1)),
    ("read/2-threads", "two threads", Threads::Same(2)),
];

pub(super) fn prepare(options: &Options) -> Result<Bench, Failure> {
    let (rivals, base) =
        options.choose(rivals(), |rival| rival.name, &["liburcu-memb", "quiescence"])?;
    let budget = loops::budget(options.quick);
    Ok(Bench {
        name: "read",
        base,
        duration: budget * (options.rounds() * (CASES.len() * rivals.len()) as u32),
        measure: Box::new(move |session| {
            let measure = |case| loops::measure(case, METRICS, &rivals, budget, session);
            let cases = CASES.into_iter().map(measure);
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(super) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let is_known = CASES.iter().any(|(id, ..)| *id == case);
    is_known.then(|| (METRICS, rivals().iter().map(|rival| rival.name).collect()))
}
