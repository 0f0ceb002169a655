//! What if, for SRCU: callers that wait for one grace period after the other, under each delay
//! function. It has a machine of its own (`simulate::srcu`), so it runs alone.

mod numbers;

use std::time::Duration;

use bench::units;
use serde_json::{Value, json};
use simulate::srcu::{DelayFunction, Options, Report, VARIANTS, run_with_progress, variant};

use super::metric::percent;
use super::options::WhatIfArgs;
use super::pool::{self, Job};
use super::product::{check_count, vary};
use super::shape::{self, Group, Setting, Shape};
use crate::distinct::distinct;
use crate::exit::{Exit, Failure, Result};
use crate::output::{Output, SchemaId};

/// The engine's name.
pub(super) const NAME: &str = "srcu";

/// What it is, in a line.
pub(super) const WHAT: &str = "SRCU: two indexes of counters, and a delay function (--variant)";

const SCHEMA: SchemaId = SchemaId("quiescence/simulate-srcu", 1);

/// Virtual time that a run may take at most: it ends there even if calls are left.
const LIMIT_NS_MAX: u64 = 3_600_000_000_000;

/// One combination.
#[derive(Clone, Debug, PartialEq)]
struct Run {
    variant: String,
    options: Options,
    sets: Vec<(String, u64)>,
}

fn job(run: &Run) -> Job<Report> {
    let options = run.options.clone();
    let calls = u64::from(options.calls);
    Job {
        name: format!("SRCU, {}", run.variant),
        // A run that never sleeps takes longest; most sleep.
        about: Duration::from_micros(20 * calls).max(Duration::from_millis(1)),
        run: Box::new(move |at| {
            let progress = &mut |made| at(u64::from(made), calls);
            // What is impossible was refused before anything ran.
            run_with_progress(&options, progress).ok().flatten()
        }),
    }
}

/// Runs every combination and tells; if `quick`, with a tenth of the calls unless that is given.
pub(super) fn run(args: &WhatIfArgs, quick: bool, output: &mut Output) -> Result<Exit> {
    let runs = runs(args, quick)?;
    let reports = pool::run(runs.iter().map(job), output);
    let all: Vec<_> = runs.iter().zip(&reports).map(run_out).collect();
    output.findings(SCHEMA, json!({ "runs": all }));
    print(&runs, &reports, output);
    Ok(output.exit(Exit::Ok))
}

/// Every combination; the delay function varies fastest: each that is named, or, if none is, each
/// that has the numbers that are set.
fn runs(args: &WhatIfArgs, quick: bool) -> Result<Vec<Run>> {
    refuse_what_it_has_not(args)?;
    let given = [("hz", args.hz.is_empty()), ("cpus", args.cpus.is_empty())];
    let given: Vec<&str> = given.iter().filter(|(_, none)| !none).map(|(name, _)| *name).collect();
    numbers::check(&args.set, &given)?;
    let mut options = Options::reports_of_2022(of(VARIANTS[0], 250));
    options.calls /= if quick { 10 } else { 1 };
    if let Some(limit) = args.duration {
        if !(1..=LIMIT_NS_MAX).contains(&limit) {
            return Err(Failure::usage("SRCU runs for some virtual time, an hour at most"));
        }
        options.limit_ns = limit;
    }
    let mut bases = vec![Run { variant: String::new(), options, sets: Vec::new() }];
    for (name, values) in &args.set {
        vary(&mut bases, values, |to, &value| to.sets.push((name.clone(), value)))?;
    }
    vary(&mut bases, &args.seed, |to, &seed| to.options.seed = seed)?;
    vary(&mut bases, &args.preemptible, |to, &on| to.options.preempt = on)?;
    vary(&mut bases, &args.hz, |to, &hz| to.options.hz = hz)?;
    vary(&mut bases, &args.cpus, |to, &cpus| {
        to.options.cpus = cpus.try_into().unwrap_or(u32::MAX);
    })?;
    let names: Vec<&str> = match args.variant.is_empty() {
        true => VARIANTS.to_vec(),
        false => args.variant.iter().map(String::as_str).collect(),
    };
    let mut runs = Vec::new();
    for (base, name) in bases.iter().flat_map(|base| names.iter().map(move |name| (base, name))) {
        let mut run = Run { variant: (*name).to_owned(), ..base.clone() };
        match run.apply()? {
            None => runs.push(run),
            Some(_) if args.variant.is_empty() => {}
            Some(number) => {
                return Err(Failure::usage(format!(
                    "the delay function {name} has no number {number}; leave it out of --variant"
                )));
            }
        }
    }
    if runs.is_empty() {
        return Err(Failure::usage(
            "no delay function has all of these numbers: some are adaptive's, some the kernel's",
        ));
    }
    check_count(runs.len())?;
    Ok(distinct(runs))
}

impl Run {
    /// Looks the delay function up and sets the numbers; gives back one that it does not have.
    fn apply(&mut self) -> Result<Option<String>> {
        // A delay function may depend on the ticks a second.
        let set = self.sets.iter().find(|(name, _)| name == "hz");
        let hz = set.map_or(self.options.hz.into(), |(_, hz)| *hz);
        self.options.delay = of(&self.variant, hz.try_into().unwrap_or(u32::MAX));
        let lacks = |(name, value): &&(String, u64)| !numbers::set(&mut self.options, name, *value);
        if let Some((lacking, _)) = self.sets.iter().find(lacks) {
            return Ok(Some(lacking.clone()));
        }
        self.options.check().map_err(Failure::usage)?;
        Ok(None)
    }
}

fn of(name: &str, hz: u32) -> DelayFunction {
    variant(name, hz).expect("--variant takes no other names")
}

/// Options of other engines' machines.
fn refuse_what_it_has_not(args: &WhatIfArgs) -> Result<()> {
    let given = [
        ("another engine", args.engine.len() > 1),
        ("--workload", !args.workload.is_empty()),
        ("--tickless", !args.tickless.is_empty()),
        ("--costs", !args.costs.is_empty()),
        ("--warm-up", args.warm_up.is_some()),
        ("--svg", args.svg.is_some()),
        ("--timeline", args.timeline.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((what, _)) => Err(Failure::usage(format!(
            "--engine {NAME} does not go with {what}: it has a machine of its own, with --variant, \
             --cpus, --hz, --preemptible, --seed, --duration and --set"
        ))),
        None => Ok(()),
    }
}

/// What can tell runs apart.
fn settings(Run { variant, options, sets }: &Run) -> Vec<Setting> {
    let machine = [
        shape::count("calls", options.calls.into()),
        shape::count("CPUs", options.cpus.into()),
        shape::count("Hz", options.hz.into()),
        shape::plain("kernel", if options.preempt { "preemptible" } else { "not preemptible" }),
        shape::named("seed", options.seed),
    ];
    let others = sets.iter().filter(|(name, _)| !["calls", "cpus", "hz"].contains(&&**name));
    let others = others.map(|(name, value)| shape::named(name, value));
    let delay = [shape::plain("delay function", variant)];
    machine.into_iter().chain(others).chain(delay).collect()
}

/// Prints what all share, the figures, and what these are.
fn print(runs: &[Run], reports: &[Option<Report>], output: &mut Output) {
    let shape = Shape::of(&runs.iter().map(settings).collect::<Vec<_>>());
    output.line(shape.shared.join(", "));
    let told =
        pool::ended(runs, reports).map(|(run, report)| (settings(run), vec![figures(report)]));
    shape.print(&told.collect::<Vec<_>>(), output);
    output.entries([
        ("p50, p99, max", "latency of a call"),
        ("worker", "its share of one CPU"),
        ("awake", "its longest time without sleeping"),
        ("pulls", "how often an idle CPU took over the preempted caller"),
    ]);
    let incomplete = pool::ended(runs, reports).filter(|(_, report)| !report.is_complete());
    let incomplete: Vec<&str> = incomplete.map(|(run, _)| run.variant.as_str()).collect();
    if !incomplete.is_empty() {
        output.note(format!("not all calls returned in time: {}", incomplete.join(", ")));
    }
}

fn figures(report: &Report) -> Group {
    let time = |ns: u64| units::nanoseconds(ns as f64);
    let figures = [
        ("seconds", format!("{:.2}", report.elapsed_ns as f64 / 1e9)),
        ("p50", time(report.latency_p50_ns)),
        ("p99", time(report.latency_p99_ns)),
        ("max", time(report.latency_max_ns)),
        ("worker", percent(report.worker_share_ppm())),
        ("awake", time(report.worker_awake_max_ns)),
        ("sleeps", units::count(report.sleeps)),
        ("pulls", units::count(report.pulls)),
    ];
    ("SRCU: grace periods, one after the other", figures.to_vec())
}

/// A run and its report, which it has unless it was interrupted.
fn run_out((Run { variant, options, sets }, report): (&Run, &Option<Report>)) -> Value {
    json!({
        "variant": variant,
        "cpus": options.cpus,
        "hz": options.hz,
        "preemptible": options.preempt,
        "seed": options.seed,
        "set": sets,
        "report": report,
    })
}

#[cfg(test)]
mod tests {
    use super::super::options;
    use super::*;

    fn resolve(line: &str, quick: bool) -> Result<Vec<Run>> {
        runs(&options::typed(&format!("--engine {NAME} {line}")).unwrap().what_if, quick)
    }

    #[test]
    fn every_delay_function_is_run_unless_some_are_named() {
        let all = resolve("", false).unwrap();
        let names: Vec<&str> = all.iter().map(|run| run.variant.as_str()).collect();
        assert_eq!(names, VARIANTS);
        assert!(all.iter().all(|run| run.options.calls == 8_000));
        let calls = |line| resolve(line, true).unwrap()[0].options.calls;
        assert_eq!((calls(""), calls("--set calls=5")), (800, 5), "a tenth unless that is given");
        assert_eq!(resolve("--variant final", false).unwrap().len(), 1);
        // They were run once more, and stood side by side.
        assert_eq!(resolve("--variant final,final --seed 1,1", false).unwrap().len(), 1);
    }

    #[test]
    fn numbers_and_ticks_are_swept_over() {
        let line = "--set calls=10,20 --set blocked_ns=5000 --variant 5.18,final --hz 100,1000";
        let runs = resolve(line, false).unwrap();
        assert_eq!(runs.len(), 8);
        let first = &runs[0];
        assert_eq!((first.options.calls, first.options.hz), (10, 100));
        assert_eq!(first.options.blocked.map(|blocked| blocked.for_ns), Some(5_000));
        assert_eq!(runs[7].sets, [("calls".to_owned(), 20), ("blocked_ns".to_owned(), 5_000)]);
        // The final delay function depends on the ticks a second.
        assert_ne!(runs[1].options.delay, runs[3].options.delay);
    }

    #[test]
    fn ticks_and_cpus_may_be_set_either_way() {
        let options = |line: &str| {
            let runs = resolve(&format!("--variant final {line}"), false).unwrap();
            runs.into_iter().map(|run| run.options).collect::<Vec<_>>()
        };
        assert_eq!(options("--set hz=100,1000 --set cpus=2"), options("--hz 100,1000 --cpus 2"));
    }
}
