//! What if, for SRCU: callers that wait for one grace period after the other, under each delay
//! function. It has a machine of its own (`simulate::srcu`), so it runs alone.

use std::time::Duration;

use bench::units;
use serde::Serialize;
use simulate::srcu::{Blocked, Options, Report, VARIANTS, variant};

use super::metric::percent;
use super::options::{Set, Switch, WhatIfArgs};
use super::pool::{self, Job, Watch};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};

/// The engine's name.
pub(super) const NAME: &str = "srcu";

/// What it is, in a line.
pub(super) const WHAT: &str = "SRCU: two indexes of counters, and a delay function (--variant)";

const SCHEMA: &str = "quiescence/simulate-srcu";
const VERSION: u32 = 1;

/// The most combinations.
const RUNS_MAX: usize = 1_000;

/// Virtual time that a run may take at most: it ends there even if calls are left.
const LIMIT_NS_MAX: u64 = 3_600_000_000_000;

/// Calls of the reports of 2022.
const CALLS: u64 = 8_000;

/// When the reader of `blocked_ns` enters: the loop is under way then.
const BLOCKED_FROM_NS: u64 = 100_000_000;

/// A number that can be set: its name, how it is set, what it is.
type Number = (&'static str, fn(&mut Options, u64), &'static str);

/// The numbers that can be set.
pub(super) const NUMBERS: &[Number] = &[
    ("calls", |to, n| to.calls = narrow(n), "grace periods that the caller waits for"),
    ("expedited", |to, n| to.expedited = n != 0, "whether they are expedited; 0 or 1"),
    ("caller_work_ns", |to, n| to.caller_work_ns = n, "mean work between two calls"),
    ("enqueue_ns", |to, n| to.enqueue_ns = n, "half of the caller's own section"),
    ("run_ns", |to, n| to.run_ns = n, "a run of the worker, besides checks and pauses"),
    ("check_ns", |to, n| to.check_ns = n, "summing an index's counts over all CPUs"),
    ("wake_ns", |to, n| to.wake_ns = n, "from a wake-up to the first instruction"),
    ("callbacks_ns", |to, n| to.callbacks_ns = n, "running the callbacks"),
    ("latency_ns", |to, n| to.scheduler.latency_ns = n, "the fair scheduler's latency"),
    (
        "min_granularity_ns",
        |to, n| to.scheduler.min_granularity_ns = n,
        "how long a task runs before a tick may preempt it",
    ),
    (
        "wakeup_granularity_ns",
        |to, n| to.scheduler.wakeup_granularity_ns = n,
        "by how much one that wakes must be behind to preempt",
    ),
    ("readers", |to, n| to.readers.count = narrow(n), "readers on other CPUs"),
    ("inside_ns", |to, n| to.readers.inside_ns = n, "mean length of their sections"),
    ("outside_ns", |to, n| to.readers.outside_ns = n, "mean time between them"),
    ("blocked_ns", blocked, "how long a reader blocks in its section, after 100 ms; 0: none"),
];

/// Values that do not fit become the largest that do: no run has as many.
fn narrow(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}

fn blocked(options: &mut Options, for_ns: u64) {
    options.blocked = (for_ns > 0).then_some(Blocked { from_ns: BLOCKED_FROM_NS, for_ns });
}

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
    output.json(&Document {
        schema: SCHEMA,
        version: VERSION,
        interrupted,
        runs: runs.iter().zip(&reports).map(|(run, report)| out(run, report.as_ref())).collect(),
    })?;
    print(args, &runs, &reports, output)?;
    Ok(if interrupted { Exit::Interrupted } else { Exit::Ok })
}

/// Every combination; the delay function varies fastest.
fn runs(args: &WhatIfArgs) -> Result<Vec<Run>, Failure> {
    refuse_what_it_has_not(args)?;
    let variants: Vec<String> = match args.variant.is_empty() {
        true => VARIANTS.iter().map(|&name| name.to_owned()).collect(),
        false => args.variant.clone(),
    };
    let mut bases = vec![(Options::reports_of_2022(of(VARIANTS[0], 250)?), Vec::new())];
    let change = |base: &(Options, Vec<(String, u64)>), change: &dyn Fn(&mut Options)| {
        let mut base = base.clone();
        change(&mut base.0);
        base
    };
    if let Some(limit) = args.duration {
        if limit.0 > LIMIT_NS_MAX {
            return Err(Failure::Usage("SRCU runs for at most an hour of virtual time".into()));
        }
        bases[0].0.limit_ns = limit.0;
    }
    for set in &args.set {
        bases = numbers(&bases, set)?;
    }
    bases = vary(&bases, &args.seed, |base, &seed| change(base, &|to| to.seed = seed))?;
    bases =
        vary(&bases, &args.preemptible, |base, &Switch(on)| change(base, &|to| to.preempt = on))?;
    bases = vary(&bases, &args.hz, |base, &hz| change(base, &|to| to.hz = hz))?;
    let mut runs = Vec::new();
    for (options, sets) in &bases {
        for name in &variants {
            let options = Options { delay: of(name, options.hz)?, ..options.clone() };
            options.check().map_err(|error| Failure::Usage(error.to_string()))?;
            runs.push(Run { variant: name.clone(), options, sets: sets.clone() });
        }
    }
    if runs.len() > RUNS_MAX {
        return Err(Failure::Usage(format!(
            "more than {RUNS_MAX} combinations; give fewer values"
        )));
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
        ("--cpus", !args.cpus.is_empty()),
        ("--tickless", !args.tickless.is_empty()),
        ("--costs", !args.costs.is_empty()),
        ("--warm-up", args.warm_up.is_some()),
        ("--svg", args.svg.is_some()),
        ("--timeline", args.timeline.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((what, _)) => Err(Failure::Usage(format!(
            "--engine {NAME} does not go with {what}: it has a machine of its own, with --variant, \
             --hz, --preemptible, --seed, --duration and --set"
        ))),
        None => Ok(()),
    }
}

/// Options in the making, and the numbers that were set.
type BaseRun = (Options, Vec<(String, u64)>);

fn numbers(bases: &[BaseRun], set: &Set) -> Result<Vec<BaseRun>, Failure> {
    let Some((name, apply, _)) = NUMBERS.iter().find(|(name, ..)| *name == set.name) else {
        let known: Vec<&str> = NUMBERS.iter().map(|(name, ..)| *name).collect();
        return Err(Failure::Usage(format!(
            "{NAME} has no number called {:?}; it has {}",
            set.name,
            known.join(", ")
        )));
    };
    vary(bases, &set.values, |base, &value| {
        let (mut options, mut sets) = base.clone();
        apply(&mut options, value);
        sets.push(((*name).to_owned(), value));
        (options, sets)
    })
}

/// As many of each as there are values; no values leave what is there.
fn vary<T>(
    bases: &[BaseRun],
    values: &[T],
    change: impl Fn(&BaseRun, &T) -> BaseRun,
) -> Result<Vec<BaseRun>, Failure> {
    if values.is_empty() {
        return Ok(bases.to_vec());
    }
    if bases.len().saturating_mul(values.len()) > RUNS_MAX {
        return Err(Failure::Usage(format!(
            "more than {RUNS_MAX} combinations; give fewer values"
        )));
    }
    let change = &change;
    Ok(bases.iter().flat_map(|base| values.iter().map(move |value| change(base, value))).collect())
}

/// Prints a line for each run; settings that all share stand above the table.
fn print(
    args: &WhatIfArgs,
    runs: &[Run],
    reports: &[Option<Report>],
    output: &mut Output,
) -> Result<(), Failure> {
    const METRICS: [&str; 7] = ["seconds", "p50", "p99", "max", "worker", "awake", "sleeps"];
    output.heading("SRCU: grace periods, one after the other")?;
    let (with_hz, with_preempt) = (args.hz.len() > 1, args.preemptible.len() > 1);
    if let Some(first) = runs.first() {
        let hz = (!with_hz).then(|| format!("{} Hz", first.options.hz));
        let kernel = (!with_preempt).then(|| kernel(first).to_owned());
        let is_set = args.set.iter().any(|set| set.name == "calls");
        let calls = (!is_set).then(|| format!("{} calls", units::count(CALLS)));
        output.line([calls, hz, kernel].into_iter().flatten().collect::<Vec<_>>().join(", "))?;
    }
    let mut names = vec!["delay function"];
    names.extend(with_hz.then_some("Hz"));
    names.extend(with_preempt.then_some("kernel"));
    names.extend(args.set.iter().map(|set| set.name.as_str()));
    let header: Vec<&str> = names.iter().copied().chain(METRICS).collect();
    let mut table = output::table(&header);
    output::numeric(&mut table, names.len()..header.len());
    let mut incomplete = Vec::new();
    for (run, report) in runs.iter().zip(reports) {
        let Some(report) = report else { continue };
        let mut row = vec![run.variant.clone()];
        row.extend(with_hz.then(|| run.options.hz.to_string()));
        row.extend(with_preempt.then(|| kernel(run).to_owned()));
        row.extend(run.sets.iter().map(|(_, value)| value.to_string()));
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
    ])?;
    if !incomplete.is_empty() {
        output.note(format!("not all calls came back in time: {}", incomplete.join(", ")));
    }
    Ok(())
}

const fn kernel(run: &Run) -> &'static str {
    if run.options.preempt { "preemptible" } else { "not preemptible" }
}

fn cells(report: &Report) -> [String; 7] {
    let time = |ns: u64| units::nanoseconds(ns as f64);
    [
        format!("{:.2}", report.elapsed_ns as f64 / 1e9),
        time(report.latency_p50_ns),
        time(report.latency_p99_ns),
        time(report.latency_max_ns),
        percent(report.worker_share_ppm()),
        time(report.worker_awake_max_ns),
        units::count(report.sleeps),
    ]
}

/// The document that `--json` writes.
#[derive(Debug, Serialize)]
struct Document<'a> {
    schema: &'static str,
    version: u32,
    interrupted: bool,
    runs: Vec<RunOut<'a>>,
}

#[derive(Debug, Serialize)]
struct RunOut<'a> {
    variant: &'a str,
    hz: u32,
    preemptible: bool,
    seed: u64,
    set: &'a [(String, u64)],
    report: Option<ReportOut>,
}

#[derive(Debug, Serialize)]
struct ReportOut {
    calls: u32,
    calls_asked: u32,
    elapsed_ns: u64,
    latency_p50_ns: u64,
    latency_p90_ns: u64,
    latency_p99_ns: u64,
    latency_max_ns: u64,
    worker_ns: u64,
    worker_awake_max_ns: u64,
    runs: u64,
    checks: u64,
    checks_failed: u64,
    sleeps: u64,
    naps: u64,
    grace_periods: u64,
    callbacks_delayed: u64,
}

fn out<'a>(run: &'a Run, report: Option<&Report>) -> RunOut<'a> {
    let report = report.map(|report| ReportOut {
        calls: report.calls,
        calls_asked: report.calls_asked,
        elapsed_ns: report.elapsed_ns,
        latency_p50_ns: report.latency_p50_ns,
        latency_p90_ns: report.latency_p90_ns,
        latency_p99_ns: report.latency_p99_ns,
        latency_max_ns: report.latency_max_ns,
        worker_ns: report.worker_ns,
        worker_awake_max_ns: report.worker_awake_max_ns,
        runs: report.runs,
        checks: report.checks,
        checks_failed: report.checks_failed,
        sleeps: report.sleeps,
        naps: report.naps,
        grace_periods: report.grace_periods,
        callbacks_delayed: report.callbacks_delayed,
    });
    RunOut {
        variant: &run.variant,
        hz: run.options.hz,
        preemptible: run.options.preempt,
        seed: run.options.seed,
        set: &run.sets,
        report,
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
        assert!(all.iter().all(|run| u64::from(run.options.calls) == CALLS));
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
    fn what_cannot_be_is_refused_with_the_known_names() {
        let cases = [
            (WhatIfArgs { variant: vec!["6.0".into()], ..args() }, "5.19-rc1"),
            (WhatIfArgs { set: vec!["tea=1".parse().unwrap()], ..args() }, "check_ns"),
            (WhatIfArgs { set: vec!["calls=0".parse().unwrap()], ..args() }, "calls"),
            (WhatIfArgs { hz: vec![0], ..args() }, "hz"),
            (WhatIfArgs { cpus: vec![4], ..args() }, "--cpus"),
            (WhatIfArgs { engine: vec![NAME.into(), "tick".into()], ..args() }, "another engine"),
            (WhatIfArgs { seed: (0..1_001).collect(), ..args() }, "1000 combinations"),
        ];
        for (args, expected) in cases {
            let message = resolve(&args).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }
}
