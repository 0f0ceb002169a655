//! What if, for SRCU: callers that wait for one grace period after the other, under each delay
//! function. It has a machine of its own (`simulate::srcu`), so it runs alone.

mod numbers;

use std::time::Duration;

use bench::units;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use simulate::srcu::{Options, Report, VARIANTS, variant};

pub(super) use self::numbers::NUMBERS;
use super::metric::percent;
use super::options::{Switch, WhatIfArgs};
use super::pool::{self, Job, Watch};
use super::product::{check_count, vary};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, SchemaId};

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

impl Job for Run {
    type Result = Report;

    fn name(&self) -> String {
        format!("SRCU, {}", self.variant)
    }

    fn about(&self) -> Duration {
        // A run that never sleeps takes longest; most sleep.
        Duration::from_micros(20 * u64::from(self.options.calls)).max(Duration::from_millis(1))
    }

    fn run(&self, _: &Watch<'_>) -> Option<Report> {
        // What is impossible was refused before anything ran.
        simulate::srcu::run(&self.options).ok()
    }
}

/// Runs every combination and tells.
pub(super) fn run(args: &WhatIfArgs, output: &mut Output) -> Result<Exit, Failure> {
    let runs = runs(args)?;
    let reports = pool::run(&runs, output)?;
    let interrupted = output.interrupt().requested();
    let all = runs.iter().zip(&reports);
    let all = all.map(|(run, report)| RunOut(run, report.as_ref())).collect();
    output.json(SCHEMA, &super::Runs { interrupted, runs: all })?;
    print(args, &runs, &reports, output)?;
    Ok(if interrupted { Exit::Interrupted } else { Exit::Ok })
}

/// Every combination; the delay function varies fastest.
fn runs(args: &WhatIfArgs) -> Result<Vec<Run>, Failure> {
    refuse_what_it_has_not(args)?;
    let given = [("hz", args.hz.is_empty()), ("cpus", args.cpus.is_empty())];
    let given: Vec<&str> = given.iter().filter(|(_, none)| !none).map(|(name, _)| *name).collect();
    numbers::check(&args.set, &given)?;
    let mut bases = vec![(Options::reports_of_2022(of(VARIANTS[0], 250)?), Vec::new())];
    if let Some(limit) = args.duration {
        if limit.0 > LIMIT_NS_MAX {
            return Err(Failure::Usage("SRCU runs for at most an hour of virtual time".into()));
        }
        bases[0].0.limit_ns = limit.0;
    }
    for set in &args.set {
        vary(&mut bases, &set.values, |(_, sets), &value| sets.push((set.name.clone(), value)))?;
    }
    vary(&mut bases, &args.seed, |(to, _), &seed| to.seed = seed)?;
    vary(&mut bases, &args.preemptible, |(to, _), &Switch(on)| to.preempt = on)?;
    vary(&mut bases, &args.hz, |(to, _), &hz| to.hz = hz)?;
    vary(&mut bases, &args.cpus, |(to, _), &cpus| to.cpus = cpus.try_into().unwrap_or(u32::MAX))?;
    let mut runs = Vec::new();
    for (options, sets) in &bases {
        runs.extend(of_variants(args, options, sets)?);
    }
    check_count(runs.len())?;
    Ok(runs)
}

/// A run for each delay function that is named; if none is, for each that has these numbers.
fn of_variants(
    args: &WhatIfArgs,
    options: &Options,
    sets: &[(String, u64)],
) -> Result<Vec<Run>, Failure> {
    // A delay function may depend on the ticks a second.
    let hz = sets.iter().find(|(name, _)| name == "hz").map_or(options.hz.into(), |(_, hz)| *hz);
    let hz = u32::try_from(hz).unwrap_or(u32::MAX);
    let all: Vec<String> = VARIANTS.iter().map(|&name| name.to_owned()).collect();
    let names = if args.variant.is_empty() { &all } else { &args.variant };
    let mut runs = Vec::new();
    for name in names {
        let mut options = Options { delay: of(name, hz)?, ..options.clone() };
        match numbers::apply(&mut options, sets) {
            Ok(()) => {}
            Err(_) if args.variant.is_empty() => continue,
            Err(number) => {
                return Err(Failure::Usage(format!(
                    "the delay function {name} has no number {number}; leave it out of --variant"
                )));
            }
        }
        options.check().map_err(|error| Failure::Usage(error.to_string()))?;
        runs.push(Run { variant: name.clone(), options, sets: sets.to_vec() });
    }
    if runs.is_empty() {
        return Err(Failure::Usage(
            "no delay function has all of these numbers: some are adaptive's, some the kernel's"
                .to_owned(),
        ));
    }
    Ok(runs)
}

fn of(name: &str, hz: u32) -> Result<simulate::srcu::DelayFunction, Failure> {
    variant(name, hz).ok_or_else(|| {
        Failure::Usage(format!(
            "no delay function is called {name:?}; there are {}",
            VARIANTS.join(", ")
        ))
    })
}

/// Options of other engines' machines.
fn refuse_what_it_has_not(args: &WhatIfArgs) -> Result<(), Failure> {
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
        Some((what, _)) => Err(Failure::Usage(format!(
            "--engine {NAME} does not go with {what}: it has a machine of its own, with --variant, \
             --cpus, --hz, --preemptible, --seed, --duration and --set"
        ))),
        None => Ok(()),
    }
}

/// Prints a line for each run; settings that all share stand above the table.
fn print(
    args: &WhatIfArgs,
    runs: &[Run],
    reports: &[Option<Report>],
    output: &mut Output,
) -> Result<(), Failure> {
    const METRICS: [&str; 8] =
        ["seconds", "p50", "p99", "max", "worker", "awake", "sleeps", "pulls"];
    output.heading("SRCU: grace periods, one after the other")?;
    let (with_hz, with_preempt) = (args.hz.len() > 1, args.preemptible.len() > 1);
    let (with_cpus, with_seed) = (args.cpus.len() > 1, args.seed.len() > 1);
    let is_swept = |name: &str| args.set.iter().any(|set| set.name == name && set.values.len() > 1);
    if let Some(Run { options, sets, .. }) = runs.first() {
        let counts = [
            ("calls", options.calls, "calls", false),
            ("cpus", options.cpus, "CPUs", with_cpus),
            ("hz", options.hz, "Hz", with_hz),
        ];
        let of_all = counts.iter().filter(|(name, _, _, swept)| !swept && !is_swept(name));
        let mut shared: Vec<String> = of_all
            .map(|(_, count, unit, _)| format!("{} {unit}", units::count(u64::from(*count))))
            .collect();
        shared.extend((!with_preempt).then(|| kernel(options).to_owned()));
        let is_count = |name: &str| counts.iter().any(|(count, ..)| *count == name);
        let others = sets.iter().filter(|(name, _)| !is_count(name) && !is_swept(name));
        shared.extend(others.map(|(name, value)| format!("{name} {value}")));
        output.line(shared.join(", "))?;
    }
    let mut names = vec!["delay function"];
    names.extend(with_cpus.then_some("CPUs"));
    names.extend(with_seed.then_some("seed"));
    names.extend(with_hz.then_some("Hz"));
    names.extend(with_preempt.then_some("kernel"));
    names.extend(args.set.iter().map(|set| set.name.as_str()).filter(|name| is_swept(name)));
    let header: Vec<&str> = names.iter().copied().chain(METRICS).collect();
    let mut table = output::table(&header);
    output::numeric(&mut table, names.len()..header.len());
    let mut incomplete = Vec::new();
    for (run, report) in runs.iter().zip(reports) {
        let Some(report) = report else { continue };
        let mut row = vec![run.variant.clone()];
        row.extend(with_cpus.then(|| run.options.cpus.to_string()));
        row.extend(with_seed.then(|| run.options.seed.to_string()));
        row.extend(with_hz.then(|| run.options.hz.to_string()));
        row.extend(with_preempt.then(|| kernel(&run.options).to_owned()));
        let swept = run.sets.iter().filter(|(name, _)| is_swept(name));
        row.extend(swept.map(|(_, value)| value.to_string()));
        row.extend(cells(report));
        table.add_row(row);
        if !report.is_complete() {
            incomplete.push(run.variant.as_str());
        }
    }
    output.table(table)?;
    output.entries([
        ("p50, p99, max", "latency of a call"),
        ("worker", "its share of one CPU"),
        ("awake", "its longest time without sleeping"),
        ("pulls", "how often an idle CPU took the preempted caller over"),
    ])?;
    if !incomplete.is_empty() {
        output.note(format!("not all calls came back in time: {}", incomplete.join(", ")));
    }
    Ok(())
}

const fn kernel(options: &Options) -> &'static str {
    if options.preempt { "preemptible" } else { "not preemptible" }
}

fn cells(report: &Report) -> [String; 8] {
    let time = |ns: u64| units::nanoseconds(ns as f64);
    [
        format!("{:.2}", report.elapsed_ns as f64 / 1e9),
        time(report.latency_p50_ns),
        time(report.latency_p99_ns),
        time(report.latency_max_ns),
        percent(report.worker_share_ppm()),
        time(report.worker_awake_max_ns),
        units::count(report.sleeps),
        units::count(report.pulls),
    ]
}

/// A run and its report, which it has unless it was interrupted.
#[derive(Debug)]
struct RunOut<'a>(&'a Run, Option<&'a Report>);

impl Serialize for RunOut<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let RunOut(Run { variant, options, sets }, report) = self;
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("variant", variant)?;
        object.serialize_entry("cpus", &options.cpus)?;
        object.serialize_entry("hz", &options.hz)?;
        object.serialize_entry("preemptible", &options.preempt)?;
        object.serialize_entry("seed", &options.seed)?;
        object.serialize_entry("set", sets)?;
        object.serialize_entry("report", report)?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> WhatIfArgs {
        WhatIfArgs { engine: vec![NAME.to_owned()], ..WhatIfArgs::default() }
    }

    fn resolve(args: &WhatIfArgs) -> Result<Vec<Run>, String> {
        runs(args).map_err(|failure| failure.to_string())
    }

    #[test]
    fn every_delay_function_is_run_unless_some_are_named() {
        let all = resolve(&args()).unwrap();
        let names: Vec<&str> = all.iter().map(|run| run.variant.as_str()).collect();
        assert_eq!(names, VARIANTS);
        assert!(all.iter().all(|run| run.options.calls == 8_000));
        let one = WhatIfArgs { variant: vec!["final".to_owned()], ..args() };
        assert_eq!(resolve(&one).unwrap().len(), 1);
    }

    #[test]
    fn numbers_and_ticks_are_swept_over() {
        let set = ["calls=10,20", "blocked_ns=5000"].map(|text| text.parse().unwrap()).to_vec();
        let variant = vec!["5.18".to_owned(), "final".to_owned()];
        let runs = resolve(&WhatIfArgs { set, variant, hz: vec![100, 1000], ..args() }).unwrap();
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
        let set = ["hz=100,1000", "cpus=2"].map(|text| text.parse().unwrap()).to_vec();
        let variant = vec!["final".to_owned()];
        let runs_by_set = resolve(&WhatIfArgs { set, variant: variant.clone(), ..args() }).unwrap();
        let by_flag = WhatIfArgs { hz: vec![100, 1000], cpus: vec![2], variant, ..args() };
        let runs_by_flag = resolve(&by_flag).unwrap();
        let options = |runs: Vec<Run>| runs.into_iter().map(|run| run.options).collect::<Vec<_>>();
        assert_eq!(options(runs_by_set), options(runs_by_flag));
    }

    #[test]
    fn delay_functions_without_a_number_are_left_out_unless_they_are_named() {
        let set = vec!["looks=20".parse().unwrap()];
        let runs = resolve(&WhatIfArgs { set: set.clone(), ..args() }).unwrap();
        assert_eq!(runs.len(), VARIANTS.len() - 1);
        assert!(runs.iter().all(|run| run.variant != "adaptive"));
        let named = WhatIfArgs { set, variant: vec!["final".into(), "adaptive".into()], ..args() };
        assert!(resolve(&named).unwrap_err().contains("adaptive has no number looks"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_the_known_names() {
        let set = |text: &str| text.parse().unwrap();
        let cases = [
            (WhatIfArgs { variant: vec!["6.0".into()], ..args() }, "5.19-rc1"),
            (WhatIfArgs { set: vec![set("tea=1")], ..args() }, "check_ns"),
            (WhatIfArgs { set: vec![set("calls=0")], ..args() }, "calls"),
            (WhatIfArgs { set: vec![set("calls=99999999999")], ..args() }, "at most 4294967294"),
            (WhatIfArgs { set: vec![set("expedited=2")], ..args() }, "at most 1"),
            (WhatIfArgs { set: vec![set("age=3")], ..args() }, "at most 2"),
            (WhatIfArgs { set: vec![set("hz=0")], ..args() }, "10 to 10,000"),
            (WhatIfArgs { set: vec![set("cpus=0")], ..args() }, "1 to 4,096"),
            (WhatIfArgs { set: vec![set("cpus=1"), set("apart=1")], ..args() }, "second CPU"),
            (WhatIfArgs { set: vec![set("looks=1"), set("looks=2")], ..args() }, "looks=A,B"),
            (WhatIfArgs { set: vec![set("hz=100")], hz: vec![250], ..args() }, "given twice"),
            (WhatIfArgs { set: vec![set("cpus=4")], cpus: vec![8], ..args() }, "given twice"),
            (WhatIfArgs { set: vec![set("looks=1"), set("nap_us=1")], ..args() }, "the kernel's"),
            (WhatIfArgs { hz: vec![0], ..args() }, "hz"),
            (WhatIfArgs { cpus: vec![usize::MAX], ..args() }, "1 to 4,096"),
            (WhatIfArgs { workload: vec!["dbench".into()], ..args() }, "--workload"),
            (WhatIfArgs { engine: vec![NAME.into(), "tick".into()], ..args() }, "another engine"),
            (WhatIfArgs { seed: (0..1_001).collect(), ..args() }, "1000 combinations"),
        ];
        for (args, expected) in cases {
            let message = resolve(&args).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
