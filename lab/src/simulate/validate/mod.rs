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

use ::bench::slices::{RunVerdict, Watch};
use ::bench::statistics::{Spread, spread};
use ::bench::units;
use comfy_table::Cell;
use quiescence::tuning::Engine;
use serde::Serialize;
use serde_json::{Value, json};
use simulate::ours::suite::COUNT_MIN;
use simulate::ours::workloads::{self, Workload};
use simulate::ours::{Algorithm, Costs, Options, Report};
use simulate::srcu::SchedulerTimes;

use super::costs::{self, Needs};
use super::pool;
use super::suite;
use crate::exit::{Exit, Failure, Result};
use crate::machine::Machine;
use crate::output::{self, Output, SchemaId};

const SCHEMA: SchemaId = SchemaId("quiescence/simulate-validate", 1);

/// The model's figure over the one that was seen is to lie in this range.
const WITHIN: std::ops::RangeInclusive<f64> = 0.67..=1.5;
/// The engines that are run.
const ENGINES: [Engine; 3] = [Engine::Adaptive, Engine::Poll, Engine::Tick];
/// Beyond this share of all CPUs for other programs, what was seen is theirs as well.
const OTHERS_MAX: f64 = 0.05;
/// How often each workload is run with each engine.
const ROUNDS: u64 = 5;
const ROUNDS_QUICK: u64 = 2;

/// A figure of a run, for real or of the model: its name in JSON, and in the table; how a value is
/// written; and of how many events it is made, with its value, which is nanoseconds, or a rate in a
/// second.
type Figure = (&'static str, &'static str, fn(f64) -> String, fn(&Report) -> (u64, f64));

const FIGURES: [Figure; 6] = [
    ("updates", "updates/s", units::figures, |of| rate(of, of.finished_updates())),
    ("reads", "reads/s", units::figures, |of| rate(of, of.reads)),
    ("grace-periods", "grace periods/s", units::figures, |of| rate(of, of.grace_periods)),
    ("membarriers", "fences/s", units::figures, |of| rate(of, of.membarriers)),
    ("wait-p50", "wait p50", units::nanoseconds, |of| (of.waits_ns.count, of.waits_ns.p50 as f64)),
    ("wait-p99", "wait p99", units::nanoseconds, |of| (of.waits_ns.count, of.waits_ns.p99 as f64)),
];

fn rate(of: &Report, count: u64) -> (u64, f64) {
    (count, count as f64 / Duration::from_nanos(of.duration_ns).as_secs_f64())
}

/// A figure as it was seen, and as the model has it.
#[derive(Clone, Copy, Debug, Serialize)]
struct Pair {
    figure: &'static str,
    #[serde(skip)]
    name: &'static str,
    #[serde(skip)]
    show: fn(f64) -> String,
    seen: Spread,
    model: f64,
    /// The model's over the median of what was seen.
    ratio: f64,
    within: bool,
}

/// A workload with an engine: what was seen, round by round, and beside it what the model gives.
#[derive(Clone, Debug)]
struct Case {
    workload: Workload,
    engine: Engine,
    options: Options,
    seen: Vec<Report>,
    pairs: Vec<Pair>,
}

/// Runs both and tells.
pub(super) fn run(quick: bool, output: &mut Output) -> Result<Exit> {
    let machine = Machine::detect();
    machine.print(output);
    let measured = costs::measure_here(quick, Needs::Kernel, output)?;
    let costs = Costs::measured(&measured).expect("the kernel was measured");
    let mut cases = cases(&machine, costs, quick);
    let rounds = if quick { ROUNDS_QUICK } else { ROUNDS };
    let watch = Watch::begin();
    run_for_real(&mut cases, rounds, output)?;
    let others = others_share(&watch.end(false, false), kernel::online_cpus(&machine));
    cases.retain(|case| !case.seen.is_empty());
    let models = models(&cases, rounds, output);
    for (case, model) in cases.iter_mut().zip(models) {
        case.pairs = pairs(&case.seen, &model);
    }
    print(&cases, output);
    if let Some(share) = others.filter(|share| *share > OTHERS_MAX) {
        output.note(format!(
            "other programs used {:.0} % of the CPUs: run it again when the machine is calm",
            100.0 * share
        ));
    }
    output.findings(SCHEMA, document(&machine, &costs, &cases, others));
    Ok(output.exit(Exit::Ok))
}

/// The share of all CPUs that others used, in this machine or beside it; none where the kernel does
/// not say.
fn others_share(run: &RunVerdict, online: usize) -> Option<f64> {
    let cpus = run.foreign_cpus? + run.stolen_cpus.unwrap_or(0.0);
    Some((cpus / online as f64).min(1.0))
}

/// With this machine's scheduler; `quick` has runs of a quarter.
fn cases(machine: &Machine, costs: Costs, quick: bool) -> Vec<Case> {
    let cpus = machine.cpus.len();
    let online = kernel::online_cpus(machine);
    let scheduler = match machine.kernel.as_deref().and_then(kernel::version) {
        Some(version) if version < kernel::EEVDF_SINCE => SchedulerTimes::cfs(online),
        _ => SchedulerTimes::eevdf(online),
    };
    let hz = kernel::ticks_a_second();
    let of = |workload: Workload| {
        let case = move |engine: Engine| {
            let algorithm = Algorithm::named(engine.name()).expect("the model has all engines");
            let mut options = Options::new(algorithm, workload.threads.clone());
            options.cpus = workload.cpus;
            options.duration = workload.duration / if quick { 4 } else { 1 };
            options.costs = costs;
            options.hz = hz.unwrap_or(options.hz);
            options.scheduler = Some(scheduler);
            let (seen, pairs) = (Vec::new(), Vec::new());
            Case { workload: workload.clone(), engine, options, seen, pairs }
        };
        ENGINES.into_iter().map(case)
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
            if output.must_stop() {
                return Ok(());
            }
            output.progress.announce(format!("{}, {}", case.workload.name, case.engine));
            let options = Options { seed: round + 1, ..case.options.clone() };
            let seen = real::run(case.engine, &options)
                .map_err(|error| Failure::io("cannot start a thread", error))?;
            case.seen.push(seen);
            output.progress.advance(about(case));
        }
    }
    output.progress.end();
    Ok(())
}

/// The model of each case, for as long as all rounds together; none where Ctrl-C came first.
fn models(cases: &[Case], rounds: u64, output: &mut Output) -> Vec<Option<Report>> {
    let job = |case: &Case| {
        let duration = case.options.duration * rounds;
        let name = format!("{}, {}, in the model", case.workload.name, case.engine);
        suite::job(name, Options { duration, ..case.options.clone() })
    };
    pool::run(cases.iter().map(job), output)
}

/// The figures that say something on both sides.
fn pairs(seen: &[Report], model: &Option<Report>) -> Vec<Pair> {
    let pair = |(figure, name, show, of): Figure| {
        let (modelled_events, model) = of(model.as_ref()?);
        let (events, figures): (Vec<u64>, Vec<f64>) = seen.iter().map(of).unzip();
        if modelled_events.max(events.iter().sum()) < COUNT_MIN {
            return None;
        }
        let seen = spread(&figures);
        let ratio = model / seen.median;
        Some(Pair { figure, name, show, seen, model, ratio, within: WITHIN.contains(&ratio) })
    };
    FIGURES.into_iter().filter_map(pair).collect()
}

/// Each figure, with what it is of.
fn all(cases: &[Case]) -> impl Iterator<Item = (&Case, &Pair)> {
    cases.iter().flat_map(|case| case.pairs.iter().map(move |pair| (case, pair)))
}

fn print(cases: &[Case], output: &mut Output) {
    for own in cases.chunk_by(|a, b| a.workload.name == b.workload.name) {
        let workload = &own[0].workload;
        output.heading(format!("{}: {}", workload.name, workload.what));
        output.table(table(own));
    }
    output.heading("Together");
    let within = all(cases).filter(|(_, pair)| pair.within).count();
    output.paragraph(format!(
        "Of {} latencies and rates the model's is within {} to {} of what was seen for {within}.",
        all(cases).count(),
        WITHIN.start(),
        WITHIN.end()
    ));
    for (case, pair) in all(cases).filter(|(_, pair)| !pair.within) {
        output.line(format!(
            "missed: {}, {}: {} {} of what was seen",
            case.workload.name,
            case.engine,
            pair.name,
            units::figures(pair.ratio)
        ));
    }
}

fn table(cases: &[Case]) -> comfy_table::Table {
    let header = ["engine", "figure", "here", "quartiles", "model", "model/here"];
    let row = |(case, pair): (&Case, &Pair)| {
        let Pair { name, show, seen, .. } = pair;
        [
            Cell::new(case.engine),
            Cell::new(name),
            Cell::new(show(seen.median)),
            Cell::new(format!("{}–{}", show(seen.low), show(seen.high))),
            Cell::new(show(pair.model)),
            suite::met(units::figures(pair.ratio), pair.within),
        ]
    };
    output::table(&header, 2.., all(cases).map(row))
}

/// The document that `--json` writes.
fn document(machine: &Machine, costs: &Costs, cases: &[Case], others_share: Option<f64>) -> Value {
    let case = |case: &Case| {
        json!({
            "workload": case.workload.name,
            "what": case.workload.what,
            "engine": case.engine.name(),
            "rounds": case.seen.len(),
            "figures": case.pairs,
        })
    };
    json!({
        "machine": machine,
        "costs_ps": costs,
        "within": [*WITHIN.start(), *WITHIN.end()],
        "others_share": others_share,
        "cases": cases.iter().map(case).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use simulate::histogram::Summary;

    use super::*;
    use crate::provenance::Provenance;

    /// Of two seconds: finished updates, sections read, grace periods, fences, and two waits.
    fn counted([updates, reads, grace_periods, membarriers]: [u64; 4], p50: u64) -> Report {
        let waits_ns = Summary { count: 1_000, p50, p99: 9_000, ..Summary::default() };
        let duration_ns = 2_000_000_000;
        let rest = Report::default();
        Report { duration_ns, updates, reads, grace_periods, membarriers, waits_ns, ..rest }
    }

    const RATES: [u64; 4] = [800, 0, 600, 50];

    #[test]
    fn figures_are_compared_where_both_sides_have_them() {
        let seen = vec![counted(RATES, 4_000); 3];
        let pairs = pairs(&seen, &Some(counted([800, 0, 900, 50], 8_000)));
        let found = |id| pairs.iter().find(|pair| pair.figure == id);
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
    fn the_model_has_each_engine() {
        assert!(Engine::ALL.iter().all(|engine| Algorithm::named(engine.name()).is_some()));
    }

    #[test]
    fn the_document_has_its_schema() {
        let machine = Machine::detect();
        let costs = Costs::modern();
        let mut case = cases(&machine, costs, true).swap_remove(0);
        case.seen = vec![counted(RATES, 4_000); 3];
        case.pairs = pairs(&case.seen, &Some(counted(RATES, 4_000)));
        let rest = json!({ "interrupted": false, "provenance": Provenance::of_this_run(false) });
        let document = document(&machine, &costs, &[case], Some(0.5));
        crate::schema::tests::hold(&SCHEMA.document([document, rest]));
    }

    #[test]
    fn updates_whose_callbacks_have_not_run_are_not_finished() {
        let mut report = Report { updates: 1_000, ..Report::default() };
        (report.callbacks.queued, report.callbacks.run) = (500, 300);
        assert_eq!(FIGURES[0].3(&report).0, 800);
    }

    #[test]
    fn others_are_programs_here_and_machines_beside_where_the_kernel_counts_those() {
        let share = |foreign, stolen| {
            let mut run = RunVerdict::default();
            (run.foreign_cpus, run.stolen_cpus) = (foreign, stolen);
            others_share(&run, 4)
        };
        assert_eq!(share(Some(0.5), Some(1.5)), Some(0.5));
        assert_eq!(share(Some(0.5), None), Some(0.125));
        assert_eq!(share(Some(3.5), Some(1.5)), Some(1.0));
        assert_eq!(share(None, None), None);
    }

    #[test]
    fn without_a_model_there_is_nothing_to_compare() {
        assert!(pairs(&[counted(RATES, 4_000)], &None).is_empty());
    }

    #[test]
    fn what_the_model_has_and_was_never_seen_is_a_miss() {
        let of = |membarriers| counted([800, 0, 600, membarriers], 4_000);
        let pairs = pairs(&[of(0)], &Some(of(500)));
        let fences = pairs.iter().find(|pair| pair.figure == "membarriers");
        assert!(fences.is_some_and(|pair| !pair.within));
    }
}
