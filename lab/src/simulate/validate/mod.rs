//! `rcu simulate --validate`: the model of the library beside the library itself, on this machine.
//!
//! Six workloads of the suite, of this machine's size ([`workloads::of_machine`]), run with the
//! library's engines for real ([`real`]) and in virtual time on a machine whose costs are what `rcu
//! costs` measures here. What a person reads off the model are latencies and rates: each of them is
//! shown as the model has it over what was seen, and is to lie within [`WITHIN`]. What does not is
//! printed as missed. It is a measurement, so a miss is no error of the program's.

mod kernel;
mod real;

use std::time::Duration;

use ::bench::statistics::{Spread, spread};
use ::bench::units;
use comfy_table::{Cell, Color};
use serde::Serialize;
use simulate::ours::suite::COUNT_MIN;
use simulate::ours::workloads::{self, Workload};
use simulate::ours::{Algorithm, Costs, Options, Report};
use simulate::srcu::SchedulerTimes;

use super::costs::{self, Needs};
use super::pool;
use super::suite;
use crate::exit::{Exit, Failure, Result};
use crate::json::object;
use crate::machine::Machine;
use crate::output::{self, Output, SchemaId};

const SCHEMA: SchemaId = SchemaId("quiescence/simulate-validate", 1);

/// The model's figure over the one that was seen is to lie in this range.
const WITHIN: std::ops::RangeInclusive<f64> = 0.67..=1.5;
/// The engines that are run.
const ENGINES: [&str; 3] = ["adaptive", "poll", "tick"];
/// Beyond this share of all CPUs for other programs, what was seen is theirs as well.
const OTHERS_MAX: f64 = 0.05;
/// How often each workload is run with each engine.
const ROUNDS: u64 = 5;
const ROUNDS_QUICK: u64 = 2;

/// A figure of a run.
#[derive(Debug)]
struct Figure {
    /// Its name in JSON.
    id: &'static str,
    name: &'static str,
    /// How a value is written.
    show: fn(f64) -> String,
    /// How many events it is made of, and the figure: nanoseconds, or a rate in a second.
    of: fn(&Counts) -> (u64, f64),
}

const FIGURES: [Figure; 6] = [
    // Updates whose callbacks have not run are not finished.
    rate("updates", "updates/s", |run| run.rate(run.updates.saturating_sub(run.callbacks_left))),
    rate("reads", "reads/s", |run| run.rate(run.reads)),
    rate("grace-periods", "grace periods/s", |run| run.rate(run.grace_periods)),
    rate("membarriers", "fences/s", |run| run.rate(run.membarriers)),
    time("wait-p50", "wait p50", |run| (run.waits, run.wait_p50_ns as f64)),
    time("wait-p99", "wait p99", |run| (run.waits, run.wait_p99_ns as f64)),
];

const fn rate(id: &'static str, name: &'static str, of: fn(&Counts) -> (u64, f64)) -> Figure {
    Figure { id, name, show: units::figures, of }
}

const fn time(id: &'static str, name: &'static str, of: fn(&Counts) -> (u64, f64)) -> Figure {
    Figure { id, name, show: units::nanoseconds, of }
}

/// What figures are taken from, of either kind of run.
#[derive(Clone, Copy, Debug)]
struct Counts {
    seconds: f64,
    updates: u64,
    callbacks_left: u64,
    reads: u64,
    grace_periods: u64,
    membarriers: u64,
    waits: u64,
    wait_p50_ns: u64,
    wait_p99_ns: u64,
}

impl Counts {
    fn rate(&self, count: u64) -> (u64, f64) {
        (count, count as f64 / self.seconds)
    }
}

impl From<&Report> for Counts {
    fn from(report: &Report) -> Self {
        Self {
            seconds: Duration::from_nanos(report.duration_ns).as_secs_f64(),
            updates: report.updates,
            callbacks_left: report.callbacks.queued.saturating_sub(report.callbacks.run),
            reads: report.reads,
            grace_periods: report.grace_periods,
            membarriers: report.membarriers,
            waits: report.waits_ns.count,
            wait_p50_ns: report.waits_ns.p50,
            wait_p99_ns: report.waits_ns.p99,
        }
    }
}

/// A figure as it was seen, and as the model has it.
#[derive(Clone, Copy, Debug)]
struct Pair {
    figure: &'static Figure,
    seen: Spread,
    model: f64,
    /// The model's over the median of what was seen.
    ratio: f64,
    within: bool,
}

/// A workload with an engine: what was seen, round by round, and what the model gives.
#[derive(Clone, Debug)]
struct Case {
    workload: Workload,
    engine: &'static str,
    options: Options,
    seen: Vec<Counts>,
}

/// Runs both and tells.
pub(super) fn run(quick: bool, output: &mut Output) -> Result<Exit> {
    let machine = Machine::detect();
    machine.print(output)?;
    let measured = costs::measure_here(quick, Needs::Kernel, output)?;
    let costs = Costs::measured(&measured).expect("the kernel was measured");
    let mut cases = cases(&machine, costs, quick);
    let rounds = if quick { ROUNDS_QUICK } else { ROUNDS };
    let load = kernel::Load::new();
    run_for_real(&mut cases, rounds, output)?;
    let others = load.others_share();
    let interrupted = output.interrupt().requested();
    let models = models(&cases, rounds, output)?;
    let told: Vec<(&Case, Vec<Pair>)> = cases
        .iter()
        .zip(&models)
        .filter(|(case, _)| !case.seen.is_empty())
        .map(|(case, model)| (case, pairs(&case.seen, model)))
        .collect();
    print(&told, output)?;
    if let Some(share) = others.filter(|share| *share > OTHERS_MAX) {
        output.note(format!(
            "other programs used {:.0} % of the CPUs: run it again when the machine is calm",
            100.0 * share
        ));
    }
    output.json(SCHEMA, &document(&machine, &costs, &told, others, interrupted))?;
    Ok(if interrupted { Exit::Interrupted } else { Exit::Ok })
}

/// With this machine's scheduler; `quick` has runs of a quarter.
fn cases(machine: &Machine, costs: Costs, quick: bool) -> Vec<Case> {
    let cpus = machine.cpus.len();
    let online = kernel::online_cpus().unwrap_or(cpus);
    let scheduler = match machine.kernel.as_deref().and_then(kernel::version) {
        Some(version) if version < kernel::EEVDF_SINCE => SchedulerTimes::cfs(online),
        _ => SchedulerTimes::eevdf(online),
    };
    let hz = kernel::ticks_a_second();
    let of = |workload: Workload| {
        let case = move |engine: &'static str| {
            let algorithm = Algorithm::named(engine)?;
            let mut options = Options::new(algorithm, workload.threads.clone());
            options.cpus = workload.cpus;
            options.duration = workload.duration / if quick { 4 } else { 1 };
            options.costs = costs;
            options.hz = hz.unwrap_or(options.hz);
            options.scheduler = Some(scheduler);
            Some(Case { workload: workload.clone(), engine, options, seen: Vec::new() })
        };
        ENGINES.into_iter().filter_map(case)
    };
    workloads::of_machine(cpus).into_iter().flat_map(of).collect()
}

/// Round by round, so that what disturbs the machine disturbs all.
fn run_for_real(cases: &mut [Case], rounds: u64, output: &mut Output) -> Result<()> {
    let about = |case: &Case| Duration::from_nanos(case.options.warm_up + case.options.duration);
    let total: Duration = cases.iter().map(about).sum();
    output.progress.begin(total * rounds as u32);
    for round in 0..rounds {
        for case in cases.iter_mut() {
            if output.interrupt().requested() {
                return Ok(());
            }
            output.check_reader()?;
            output.progress.announce(format!("{}, {}", case.workload.name, case.engine));
            let engine = real::engine(case.options.algorithm);
            let options = Options { seed: round + 1, ..case.options.clone() };
            if let Some(engine) = engine {
                let seen = real::run(engine, &options)
                    .map_err(|error| Failure::io("cannot start a thread", error))?;
                case.seen.push(seen);
            }
            output.progress.advance(about(case));
        }
    }
    output.progress.end();
    Ok(())
}

/// The model of each case, for as long as all rounds together; none where Ctrl-C came first.
fn models(cases: &[Case], rounds: u64, output: &mut Output) -> Result<Vec<Option<Counts>>> {
    let job = |case: &Case| {
        let duration = case.options.duration * rounds;
        let name = format!("{}, {}, in the model", case.workload.name, case.engine);
        suite::job(name, Options { duration, ..case.options.clone() })
    };
    let jobs: Vec<_> = cases.iter().map(job).collect();
    let reports = pool::run(&jobs, output)?;
    Ok(reports.iter().map(|report| report.as_ref().map(Counts::from)).collect())
}

/// The figures that say something on both sides.
fn pairs(seen: &[Counts], model: &Option<Counts>) -> Vec<Pair> {
    let pair = |figure: &'static Figure| {
        let (modelled_events, model) = (figure.of)(model.as_ref()?);
        let events: u64 = seen.iter().map(|counts| (figure.of)(counts).0).sum();
        if modelled_events.max(events) < COUNT_MIN {
            return None;
        }
        let figures: Vec<f64> = seen.iter().map(|counts| (figure.of)(counts).1).collect();
        let seen = spread(&figures);
        let ratio = model / seen.median;
        Some(Pair { figure, seen, model, ratio, within: WITHIN.contains(&ratio) })
    };
    FIGURES.iter().filter_map(pair).collect()
}

/// Each figure, with what it is of.
fn all<'a>(told: &'a [(&Case, Vec<Pair>)]) -> impl Iterator<Item = (&'a Case, &'a Pair)> {
    told.iter().flat_map(|(case, pairs)| pairs.iter().map(move |pair| (*case, pair)))
}

fn print(told: &[(&Case, Vec<Pair>)], output: &mut Output) -> Result<()> {
    for own in told.chunk_by(|(a, _), (b, _)| a.workload.name == b.workload.name) {
        let workload = &own[0].0.workload;
        output.heading(format!("{}: {}", workload.name, workload.what))?;
        output.table(table(own))?;
    }
    output.heading("Together")?;
    let within = all(told).filter(|(_, pair)| pair.within).count();
    output.paragraph(format!(
        "Of {} latencies and rates the model's is within {} to {} of what was seen for {within}.",
        all(told).count(),
        WITHIN.start(),
        WITHIN.end()
    ))?;
    for (case, pair) in all(told).filter(|(_, pair)| !pair.within) {
        output.line(format!(
            "missed: {}, {}: {} {} of what was seen",
            case.workload.name,
            case.engine,
            pair.figure.name,
            units::figures(pair.ratio)
        ))?;
    }
    Ok(())
}

fn table(told: &[(&Case, Vec<Pair>)]) -> comfy_table::Table {
    let header = ["engine", "figure", "here", "quartiles", "model", "model/here"];
    let row = |(case, pair): (&Case, &Pair)| {
        let (Figure { name, show, .. }, seen) = (pair.figure, &pair.seen);
        let ratio = Cell::new(units::figures(pair.ratio));
        [
            Cell::new(case.engine),
            Cell::new(name),
            Cell::new(show(seen.median)),
            Cell::new(format!("{}–{}", show(seen.low), show(seen.high))),
            Cell::new(show(pair.model)),
            if pair.within { ratio } else { ratio.fg(Color::Red) },
        ]
    };
    output::table(&header, 2.., all(told).map(row))
}

/// The document that `--json` writes.
fn document(
    machine: &Machine,
    costs: &Costs,
    told: &[(&Case, Vec<Pair>)],
    others_share: Option<f64>,
    interrupted: bool,
) -> impl Serialize {
    let figure = |pair: &Pair| {
        object! {
            "figure": pair.figure.id,
            "seen": pair.seen,
            "model": pair.model,
            "ratio": pair.ratio,
            "within": pair.within,
        }
    };
    let case = |(case, pairs): &(&Case, Vec<Pair>)| {
        object! {
            "workload": case.workload.name,
            "what": case.workload.what,
            "engine": case.engine,
            "rounds": case.seen.len(),
            "figures": pairs.iter().map(figure).collect::<Vec<_>>(),
        }
    };
    object! {
        "interrupted": interrupted,
        "machine": machine,
        "costs_ps": costs,
        "within": [*WITHIN.start(), *WITHIN.end()],
        "others_share": others_share,
        "cases": told.iter().map(case).collect::<Vec<_>>(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provenance::Provenance;

    const COUNTS: Counts = Counts {
        seconds: 2.0,
        updates: 1_000,
        callbacks_left: 200,
        reads: 0,
        grace_periods: 600,
        membarriers: 50,
        waits: 1_000,
        wait_p50_ns: 4_000,
        wait_p99_ns: 9_000,
    };

    #[test]
    fn figures_are_compared_where_both_sides_have_them() {
        let slower = Counts { wait_p50_ns: 8_000, grace_periods: 900, ..COUNTS };
        let pairs = pairs(&[COUNTS; 3], &Some(slower));
        let found = |id| pairs.iter().find(|pair: &&Pair| pair.figure.id == id);
        let updates = found("updates").expect("there are enough");
        assert_eq!((updates.seen.median, updates.ratio), (400.0, 1.0));
        assert!(updates.within);
        let wait = found("wait-p50").expect("there are enough");
        assert!(wait.ratio == 2.0 && !wait.within);
        let grace_periods = found("grace-periods").expect("there are enough");
        assert!(grace_periods.ratio == 1.5 && grace_periods.within, "both ends are within");
        assert!(found("reads").is_none(), "there are no reads");
        assert!(found("membarriers").is_some(), "150 in three rounds");
    }

    #[test]
    fn the_document_has_its_schema() {
        let machine = Machine::detect();
        let costs = Costs::modern();
        let cases = cases(&machine, costs, true);
        let told = [(&cases[0], pairs(&[COUNTS; 3], &Some(COUNTS)))];
        let document = document(&machine, &costs, &told, Some(0.5), false);
        let provenance = Provenance::of_this_run();
        let whole = output::complete(Some(SCHEMA), &document, &provenance);
        crate::schema::tests::hold(&serde_json::to_value(whole).expect("it is JSON"));
    }

    #[test]
    fn without_a_model_there_is_nothing_to_compare() {
        assert!(pairs(&[COUNTS], &None).is_empty());
    }

    #[test]
    fn what_the_model_has_and_was_never_seen_is_a_miss() {
        let none = Counts { membarriers: 0, ..COUNTS };
        let pairs = pairs(&[none], &Some(Counts { membarriers: 500, ..COUNTS }));
        let fences = pairs.iter().find(|pair| pair.figure.id == "membarriers");
        assert!(fences.is_some_and(|pair| !pair.within));
    }
}
