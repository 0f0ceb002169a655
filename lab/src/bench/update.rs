//! `rcu bench update`: replace an object of 64 bytes and retire the old one.

use std::time::Duration;

use rivals::bench::update::{UpdateRival, rivals};

use super::rounds::{Case, Metric, Sample, Series, Session, Unit};
use super::{Bench, Options};
use crate::exit::Failure;

const METRICS: &[Metric] = &[
    Metric { name: "update", unit: Unit::Nanoseconds },
    Metric { name: "updates", unit: Unit::PerSecond },
    Metric { name: "unreclaimed peak", unit: Unit::Objects },
];

/// Readers that read meanwhile without pause.
const CASES: [(&str, &str, usize); 2] =
    [("update/no-reader", "no reader", 0), ("update/1-reader", "one busy reader", 1)];

/// Updates in one measurement: the same for all, since the peak depends on it.
const UPDATES: u64 = 100_000;
const UPDATES_QUICK: u64 = 20_000;

/// About what an update takes, for the progress bar.
const ABOUT: Duration = Duration::from_nanos(300);

pub(super) fn prepare(options: &Options) -> Result<Bench, Failure> {
    let (rivals, base) = options.choose(rivals(), |rival| rival.name, &["quiescence"])?;
    let updates = if options.quick { UPDATES_QUICK } else { UPDATES };
    let budget = ABOUT * updates as u32;
    Ok(Bench {
        name: "update",
        base,
        duration: budget * (options.rounds() * (CASES.len() * rivals.len()) as u32),
        measure: Box::new(move |session| {
            let cases = CASES.iter().map(|case| measure(*case, &rivals, updates, session));
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

fn measure(
    (id, title, readers): (&'static str, &'static str, usize),
    rivals: &[&UpdateRival],
    updates: u64,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Failure> {
    let series = rivals.iter().map(|rival| Series::new(rival.name, rival.ours, METRICS));
    let case = Case { id, title, metrics: METRICS, rivals: series.collect(), disturbed: 0 };
    session.interleave(case, ABOUT * updates as u32, |number| {
        let seen = rivals[number].measure(readers, updates);
        let per_second = 1e9 / seen.ns_per_update;
        Sample {
            values: vec![seen.ns_per_update, per_second, seen.unreclaimed_peak as f64],
            readers_share: seen.readers_share,
        }
    })
}
