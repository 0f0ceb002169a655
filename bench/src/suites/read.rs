//! `rcu bench read`: enter a section, load the pointer, read its word, leave.

use super::rounds::{Metric, Unit};
use super::timed::{self, Threads};
use super::{Options, Suite};
use crate::Error;
use crate::rivals::{self, Rival};

const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];

/// Threads that read at the same time.
const CASES: [(&str, &str, Threads); 2] = [
    ("read/1-thread", "one thread", Threads::Same(1)),
    ("read/2-threads", "two threads", Threads::Same(2)),
];

fn rivals() -> Vec<&'static Rival> {
    rivals::all().filter(|rival| rival.read.is_some()).collect()
}

/// The suite, ready to run.
///
/// # Errors
/// If a rival is named that there is not.
pub fn prepare(options: &Options) -> Result<Suite, Error> {
    let (rivals, base) = options.choose(&rivals(), &["liburcu-memb", "quiescence"])?;
    let budget = timed::budget(options.quick);
    Ok(Suite {
        name: "read",
        base,
        duration: budget * (options.rounds() * (CASES.len() * rivals.len()) as u32),
        measure: Box::new(move |session| {
            let measure =
                |case| timed::measure(case, METRICS, &rivals, |rival| rival.read, budget, session);
            let cases = CASES.into_iter().map(measure);
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let is_known = CASES.iter().any(|(id, ..)| *id == case);
    is_known.then(|| (METRICS, rivals().iter().map(|rival| rival.name).collect()))
}
