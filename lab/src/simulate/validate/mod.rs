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
use comfy_table::{Cell, Color};
use quiescence::tuning::Engine;
use serde_json::{Value, json};
use simulate::histogram::Summary;
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

/// A figure of a run.
#[derive(Debug)]
struct Figure {
    /// Its name in JSON.
    id: &'static str,
    name: &'static str,
    /// How a value is written.
    show: fn(f64) -> String,
}

const FIGURES: [Figure; 6] = [
    Figure { id: "updates", name: "updates/s", show: units::figures },
    Figure { id: "reads", name: "reads/s", show: units::figures },
    Figure { id: "grace-periods", name: "grace periods/s", show: units::figures },
    Figure { id: "membarriers", name: "fences/s", show: units::figures },
    Figure { id: "wait-p50", name: "wait p50", show: units::nanoseconds },
    Figure { id: "wait-p99", name: "wait p99", show: units::nanoseconds },
];

/// Of each figure, of either kind of run: how many events it is made of, and the figure, which is
/// nanoseconds, or a rate in a second.
type Values = [(u64, f64); FIGURES.len()];

/// The values of a run of this length. `rates` counts updates, sections read, grace periods and
/// fences; `callbacks` those that were queued and those that ran.
fn values(duration: Duration, mut rates: [u64; 4], callbacks: [u64; 2], waits: &Summary) -> Values {
    // Updates whose callbacks have not run are not finished.
    let [queued, run] = callbacks;
    rates[0] = rates[0].saturating_sub(queued.saturating_sub(run));
    let [updates, reads, grace_periods, membarriers] =
        rates.map(|count| (count, count as f64 / duration.as_secs_f64()));
    let [p50, p99] = [waits.p50, waits.p99].map(|ns| (waits.count, ns as f64));
    [updates, reads, grace_periods, membarriers, p50, p99]
}

/// The values of a model's run.
fn of_model(report: &Report) -> Values {
    let rates = [report.updates, report.reads, report.grace_periods, report.membarriers];
    let callbacks = [report.callbacks.queued, report.callbacks.run];
    values(Duration::from_nanos(report.duration_ns), rates, callbacks, &report.waits_ns)
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
    engine: Engine,
    options: Options,
    seen: Vec<Values>,
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
    let models = models(&cases, rounds, output);
    let told: Vec<(&Case, Vec<Pair>)> = cases
        .iter()
        .zip(&models)
        .filter(|(case, _)| !case.seen.is_empty())
        .map(|(case, model)| (case, pairs(&case.seen, model)))
        .collect();
    print(&told, output);
    if let Some(share) = others.filter(|share| *share > OTHERS_MAX) {
        output.note(format!(
            "other programs used {:.0} % of the CPUs: run it again when the machine is calm",
            100.0 * share
        ));
    }
    output.findings(SCHEMA, document(&machine, &costs, &told, others));
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
            Case { workload: workload.clone(), engine, options, seen: Vec::new() }
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
fn models(cases: &[Case], rounds: u64, output: &mut Output) -> Vec<Option<Values>> {
    let job = |case: &Case| {
        let duration = case.options.duration * rounds;
        let name = format!("{}, {}, in the model", case.workload.name, case.engine);
        suite::job(name, Options { duration, ..case.options.clone() })
    };
    let reports = pool::run(cases.iter().map(job), output);
    reports.iter().map(|report| report.as_ref().map(of_model)).collect()
}

/// The figures that say something on both sides.
fn pairs(seen: &[Values], model: &Option<Values>) -> Vec<Pair> {
    let pair = |(place, figure): (usize, &'static Figure)| {
        let (modelled_events, model) = model.as_ref()?[place];
        let events: u64 = seen.iter().map(|values| values[place].0).sum();
        if modelled_events.max(events) < COUNT_MIN {
            return None;
        }
        let figures: Vec<f64> = seen.iter().map(|values| values[place].1).collect();
        let seen = spread(&figures);
        let ratio = model / seen.median;
        Some(Pair { figure, seen, model, ratio, within: WITHIN.contains(&ratio) })
    };
    FIGURES.iter().enumerate().filter_map(pair).collect()
}

/// Each figure, with what it is of.
fn all<'a>(told: &'a [(&Case, Vec<Pair>)]) -> impl Iterator<Item = (&'a Case, &'a Pair)> {
    told.iter().flat_map(|(case, pairs)| pairs.iter().map(move |pair| (*case, pair)))
}

fn print(told: &[(&Case, Vec<Pair>)], output: &mut Output) {
    for own in told.chunk_by(|(a, _), (b, _)| a.workload.name == b.workload.name) {
        let workload = &own[0].0.workload;
        output.heading(format!("{}: {}", workload.name, workload.what));
        output.table(table(own));
    }
    output.heading("Together");
    let within = all(told).filter(|(_, pair)| pair.within).count();
    output.paragraph(format!(
        "Of {} latencies and rates the model's is within {} to {} of what was seen for {within}.",
        all(told).count(),
        WITHIN.start(),
        WITHIN.end()
    ));
    for (case, pair) in all(told).filter(|(_, pair)| !pair.within) {
        output.line(format!(
            "missed: {}, {}: {} {} of what was seen",
            case.workload.name,
            case.engine,
            pair.figure.name,
            units::figures(pair.ratio)
        ));
    }
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
) -> Value {
    let figure = |pair: &Pair| {
        json!({
            "figure": pair.figure.id,
            "seen": pair.seen,
            "model": pair.model,
            "ratio": pair.ratio,
            "within": pair.within,
        })
    };
    let case = |(case, pairs): &(&Case, Vec<Pair>)| {
        json!({
            "workload": case.workload.name,
            "what": case.workload.what,
            "engine": case.engine.name(),
            "rounds": case.seen.len(),
            "figures": pairs.iter().map(figure).collect::<Vec<_>>(),
        })
    };
    json!({
        "machine": machine,
        "costs_ps": costs,
        "within": [*WITHIN.start(), *WITHIN.end()],
        "others_share": others_share,
        "cases": told.iter().map(case).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use simulate::ours::{Group, Role};

    use super::*;
    use crate::provenance::Provenance;

    /// Of two seconds: finished updates, sections read, grace periods, fences, and two waits.
    fn counted(rates: [u64; 4], [p50, p99]: [u64; 2]) -> Values {
        let waits = Summary { count: 1_000, p50, p99, ..Summary::default() };
        values(Duration::from_secs(2), rates, [0; 2], &waits)
    }

    const RATES: [u64; 4] = [800, 0, 600, 50];
    const WAITS_NS: [u64; 2] = [4_000, 9_000];

    #[test]
    fn figures_are_compared_where_both_sides_have_them() {
        let slower = counted([800, 0, 900, 50], [8_000, 9_000]);
        let pairs = pairs(&[counted(RATES, WAITS_NS); 3], &Some(slower));
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
    fn the_model_has_each_engine() {
        assert!(Engine::ALL.iter().all(|engine| Algorithm::named(engine.name()).is_some()));
    }

    #[test]
    fn the_document_has_its_schema() {
        let machine = Machine::detect();
        let costs = Costs::modern();
        let cases = cases(&machine, costs, true);
        let values = counted(RATES, WAITS_NS);
        let told = [(&cases[0], pairs(&[values; 3], &Some(values)))];
        let rest = json!({ "interrupted": false, "provenance": Provenance::of_this_run(false) });
        let document = document(&machine, &costs, &told, Some(0.5));
        crate::schema::tests::hold(&SCHEMA.document([document, rest]));
    }

    #[test]
    fn updates_whose_callbacks_have_not_run_are_not_finished() {
        let algorithm = Algorithm::named("adaptive").expect("it is the default");
        let mut options = Options::new(algorithm, vec![Group { count: 1, role: Role::Idle }]);
        (options.warm_up, options.duration) = (0, 1_000_000);
        let mut report = simulate::ours::run(&options).expect("one thread can be simulated");
        (report.updates, report.callbacks.queued, report.callbacks.run) = (1_000, 500, 300);
        assert_eq!(of_model(&report)[0].0, 800);
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
        assert!(pairs(&[counted(RATES, WAITS_NS)], &None).is_empty());
    }

    #[test]
    fn what_the_model_has_and_was_never_seen_is_a_miss() {
        let of = |membarriers| counted([800, 0, 600, membarriers], WAITS_NS);
        let pairs = pairs(&[of(0)], &Some(of(500)));
        let fences = pairs.iter().find(|pair| pair.figure.id == "membarriers");
        assert!(fences.is_some_and(|pair| !pair.within));
    }
}
