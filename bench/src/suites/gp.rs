//! `rcu bench gp`: how long a grace period takes, and what waiting for it costs the readers.

use std::time::Duration;

use super::rounds::{Case, Metric, Sample, Session, Unit};
use super::{Options, Suite};
use crate::Error;
use crate::cases::grace::{IdleThreads, rivals, steps_for};
use crate::rivals::Rival;

const LATENCY: &[Metric] = &[
    Metric { name: "p50", unit: Unit::Nanoseconds },
    Metric { name: "p99", unit: Unit::Nanoseconds },
];

/// By the CPU second first: what a waiter burns is missing there, and on a machine that others use
/// too, the reads by the second tell what the others did.
const CONTENTION: &[Metric] = &[
    Metric { name: "reads per CPU s", unit: Unit::PerSecond },
    Metric { name: "reads", unit: Unit::PerSecond },
    Metric { name: "grace periods", unit: Unit::PerSecond },
];

/// Who else is registered: idle threads, and readers that never rest.
struct Scene {
    id: &'static str,
    title: &'static str,
    idle: usize,
    readers: usize,
}

const CASES: [Scene; 4] = [
    Scene { id: "gp/alone", title: "nobody else registered", idle: 0, readers: 0 },
    Scene { id: "gp/busy-reader", title: "one busy reader", idle: 0, readers: 1 },
    Scene { id: "gp/200-idle", title: "200 idle threads", idle: 200, readers: 0 },
    Scene { id: "gp/10000-idle", title: "10,000 idle threads", idle: 10_000, readers: 0 },
];

/// Time for one measurement of one rival.
const BUDGET: Duration = Duration::from_millis(30);
const BUDGET_QUICK: Duration = Duration::from_millis(10);
/// Beside readers a measurement is so many times shorter: shorter than a time slice, so that the
/// readers can be there from its beginning to its end also where others want their CPUs.
const BESIDE_READERS: u32 = 8;
/// Here a grace period may take many time slices.
const BUDGET_OVERSUBSCRIBED: Duration = Duration::from_millis(400);
const BUDGET_OVERSUBSCRIBED_QUICK: Duration = Duration::from_millis(150);

/// The readers of `--oversubscribed` and the length of their sections.
const READERS: usize = 6;
const SECTION: Duration = Duration::from_micros(1);

/// The suite, ready to run. `oversubscribed`: six readers with sections of 1 µs and one updater on
/// whatever CPUs there are, and nothing else.
///
/// # Errors
/// If a rival is named that there is not.
pub fn prepare(oversubscribed: bool, options: &Options) -> Result<Suite, Error> {
    let (rivals, base) = options.choose(&rivals(), &["liburcu-memb", "quiescence"])?;
    let measurements = options.rounds() * rivals.len() as u32;
    if oversubscribed {
        let budget =
            if options.quick { BUDGET_OVERSUBSCRIBED_QUICK } else { BUDGET_OVERSUBSCRIBED };
        return Ok(Suite {
            name: "gp --oversubscribed",
            base,
            duration: budget * measurements,
            measure: Box::new(move |session| {
                Ok(contention(&rivals, budget, session)?.into_iter().collect())
            }),
        });
    }
    let budget = if options.quick { BUDGET_QUICK } else { BUDGET };
    Ok(Suite {
        name: "gp",
        base,
        duration: budget * (measurements * CASES.len() as u32),
        measure: Box::new(move |session| {
            let cases = CASES.iter().map(|case| latency(case, &rivals, budget, session));
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

fn latency(
    of: &Scene,
    rivals: &[&'static Rival],
    budget: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    if session.host.is_stopped() {
        return Ok(None);
    }
    let idle_threads = match IdleThreads::gather(rivals, of.idle) {
        Ok(idle_threads) => idle_threads,
        Err(error) => {
            session.host.note(&format_args!("{}: left out: {error}", of.title));
            return Ok(None);
        }
    };
    let case = Case::of(of.id, of.title, LATENCY, rivals);
    let budget = if of.readers > 0 { budget / BESIDE_READERS } else { budget };
    session.interleave(case, budget, |number| {
        let latency = idle_threads.measure(rivals[number], of.readers, budget);
        Sample::new([latency.p50_ns, latency.p99_ns], latency.judged)
    })
}

fn contention(
    rivals: &[&'static Rival],
    budget: Duration,
    session: &mut Session<'_>,
) -> Result<Option<Case>, Error> {
    let idle_threads =
        IdleThreads::gather(rivals, 0).map_err(|error| Error::io("cannot start", error))?;
    let steps = steps_for(SECTION);
    let title = "6 readers with sections of 1 µs, one updater that waits in a loop";
    let case = Case::of("gp/oversubscribed", title, CONTENTION, rivals);
    session.interleave(case, budget, |number| {
        let contention = idle_threads.contend(rivals[number], READERS, steps, budget);
        // Readers waiting for a CPU are the point here.
        let values = [
            contention.reads_per_cpu_second,
            contention.reads_per_second,
            contention.grace_periods_per_second,
        ];
        Sample::new(values, None)
    })
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let metrics = match case {
        "gp/oversubscribed" => CONTENTION,
        _ => CASES.iter().any(|scene| scene.id == case).then_some(LATENCY)?,
    };
    Some((metrics, rivals().iter().map(|rival| rival.name).collect()))
}
