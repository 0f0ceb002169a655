//! `rcu simulate --suite`: the library's default engine against its fixed ones and liburcu's
//! algorithm, on every workload of the suite.
//!
//! What is asked is in `simulate::ours::suite`; here it is run and told. An aim that is not reached
//! is shown as such. Those that were not when they were recorded are listed ([`KNOWN_MISSES`]):
//! since a simulation gives the same bytes on every machine, another one is a change for the worse,
//! and the exit code is 1.

use std::ops::ControlFlow;
use std::time::Duration;

use bench::units;
use comfy_table::{Cell, Color};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use simulate::ours::suite::{self, Aim, Case, Target};
use simulate::ours::{self, Algorithm, Options, Report};

use super::options::SimulateArgs;
use super::pool::{self, Job, Watch};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output, SchemaId};

const SCHEMA: SchemaId = SchemaId("quiescence/simulate-suite", 3);

/// Aims that were not reached when they were recorded: case and aim, of either size of the suite.
const KNOWN_MISSES: &[(&str, Aim)] = &[
    // tick does four fifths of the updates: what it does not spend on updates its readers have.
    ("server-64", Aim::Reads),
    // At the limit each thread that queues closures waits for a grace period of its own, again and
    // again, until the worker has made room; under tick those waits take ticks.
    ("flood-calls", Aim::Cpu),
    // A grace period for each full batch; tick takes together what was queued in a tick or two, in
    // four times the memory or, at the limit, with fewer updates.
    ("busy-readers-retire", Aim::Cpu),
    ("flood", Aim::Cpu),
    ("bursts", Aim::Cpu),
    // poll's worker ends grace periods while the updater computes, at a tenth of all CPUs.
    ("stalled-reader", Aim::Updates),
];

/// A case with one engine.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    /// The case's place.
    pub(super) case: usize,
    pub(super) name: String,
    /// They can be simulated.
    pub(super) options: Options,
}

impl Job for Entry {
    type Result = Report;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn about(&self) -> Duration {
        // Most of them take as long as a few hundredths of their virtual time.
        Duration::from_nanos(self.options.duration / 10).max(Duration::from_millis(10))
    }

    fn run(&self, watch: &Watch<'_>) -> Option<Report> {
        let end = self.options.warm_up + self.options.duration;
        let progress = &mut |now: u64| {
            let permille = u16::try_from(now.saturating_mul(1_000) / end).unwrap_or(1_000);
            if watch.reached(permille) { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        ours::run_with_progress(&self.options, progress).ok().flatten()
    }
}

/// A case, what its engines have shown, and what came of the aims.
#[derive(Clone, Debug)]
struct Judged {
    case: Case,
    reports: Vec<Report>,
    targets: Vec<Target>,
}

/// Runs the suite and tells.
pub(super) fn run(args: &SimulateArgs, output: &mut Output) -> Result<Exit, Failure> {
    let quick = args.quick;
    let cases = cases(args)?;
    let entries = entries(&cases);
    let reports = pool::run(&entries, output)?;
    let judged = judge(cases, &entries, reports);
    let interrupted = output.interrupt().requested();
    output.json(SCHEMA, &document(&judged, quick, interrupted))?;
    print(&judged, output)?;
    // What is asked was recorded on the machines that the workloads have.
    let broken = match args.on_cpus {
        None => broken(&judged, KNOWN_MISSES),
        Some(_) => Vec::new(),
    };
    for (case, target) in &broken {
        output.note(format!("{case}: {} was met when it was recorded", name(target.aim)));
    }
    Ok(match (interrupted, broken.is_empty()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Ok,
        (false, false) => Exit::Violation,
    })
}

/// The cases that were asked for.
fn cases(args: &SimulateArgs) -> Result<Vec<Case>, Failure> {
    let all = suite::cases(args.quick);
    let names: Vec<&str> = all.iter().map(|case| case.workload.name).collect();
    if let Some(unknown) = args.only.iter().find(|only| !names.contains(&only.as_str())) {
        return Err(Failure::Usage(format!(
            "no workload of the suite is called {unknown}; there are {}",
            names.join(", ")
        )));
    }
    let is_asked_for = |case: &Case| {
        args.only.is_empty() || args.only.iter().any(|only| only == case.workload.name)
    };
    let on_machine = |case: Case| {
        let case = match args.on_cpus {
            Some(cpus) => case.on_cpus(cpus),
            None => case,
        };
        let fault = case.options.check().err();
        fault.map_or(Ok(case.clone()), |reason| {
            Err(Failure::Usage(format!("{}: {reason}", case.workload.name)))
        })
    };
    all.into_iter().filter(is_asked_for).map(on_machine).collect()
}

fn entries(cases: &[Case]) -> Vec<Entry> {
    let of = |(place, case): (usize, &Case)| {
        let entry = |name: &str| {
            let algorithm = Algorithm::named(name)?;
            let name = format!("{}, {name}", case.workload.name);
            Some(Entry { case: place, name, options: case.under(algorithm) })
        };
        Algorithm::NAMES.into_iter().filter_map(entry).collect::<Vec<_>>()
    };
    cases.iter().enumerate().flat_map(of).collect()
}

/// Puts together what belongs together. A case that was interrupted is left out: a best engine that
/// has not run cannot be compared with.
fn judge(cases: Vec<Case>, entries: &[Entry], reports: Vec<Option<Report>>) -> Vec<Judged> {
    let mut own: Vec<Vec<Option<Report>>> = cases.iter().map(|_| Vec::new()).collect();
    for (entry, report) in entries.iter().zip(reports) {
        own[entry.case].push(report);
    }
    let judged = |(case, reports): (Case, Vec<Option<Report>>)| {
        let reports = reports.into_iter().collect::<Option<Vec<Report>>>()?;
        let targets = suite::judge(&case, &reports);
        Some(Judged { case, reports, targets })
    };
    cases.into_iter().zip(own).filter_map(judged).collect()
}

/// Aims that are not reached and were when they were recorded.
fn broken<'a>(judged: &'a [Judged], known: &[(&str, Aim)]) -> Vec<(&'a str, &'a Target)> {
    let of = |judged: &'a Judged| {
        judged.targets.iter().map(|target| (judged.case.workload.name, target))
    };
    let is_broken = |(case, target): &(&str, &Target)| {
        !target.reached && !known.iter().any(|(name, aim)| name == case && *aim == target.aim)
    };
    judged.iter().flat_map(of).filter(is_broken).collect()
}

/// In words.
const fn name(aim: Aim) -> &'static str {
    match aim {
        Aim::Updates => "updates",
        Aim::Reads => "sections read",
        Aim::WaitP50 => "median wait",
        Aim::WaitMean => "mean wait",
        Aim::WaitP99 => "wait of 99 in 100",
        Aim::ExpeditedMean => "mean expedited wait",
        Aim::Cpu => "CPU time of grace periods",
    }
}

/// The head of its column.
const fn column(aim: Aim) -> &'static str {
    match aim {
        Aim::Updates => "updates",
        Aim::Reads => "reads",
        Aim::WaitP50 => "p50",
        Aim::WaitMean => "mean",
        Aim::WaitP99 => "p99",
        Aim::ExpeditedMean => "hurried",
        Aim::Cpu => "CPU",
    }
}

fn print(judged: &[Judged], output: &mut Output) -> Result<(), Failure> {
    for judged in judged {
        let Case { workload, options } = &judged.case;
        let larger = if options.cpus == workload.cpus { "" } else { "in proportion on " };
        let machine = format!("{larger}{} CPUs", options.cpus);
        output.heading(format!("{}: {}; {machine}", workload.name, workload.what))?;
        output.table(figures(judged))?;
    }
    output.heading("What the columns are")?;
    output.entries([
        ("updates/s", "waits that have ended, objects retired, closures queued"),
        ("wait", "of threads that wait for a grace period: median, 99 of 100, longest"),
        ("CPU", "share of all CPUs that grace periods take, with the interrupts of others"),
        ("fences/s", "membarrier system calls"),
        ("memory", "bytes of the callbacks that waited at the same time, at most"),
    ])?;
    output.heading(format!("{} with its default numbers, over the others", suite::JUDGED))?;
    output.table(table(judged))?;
    let limit = |aim: Aim| units::figures(aim.limit_permille() as f64 / 1_000.0);
    let best = limit(Aim::Updates);
    output.entries([
        ("updates, reads", format!("over the best of poll, tick and token: at least {best}")),
        ("p50 to hurried", format!("waits over poll's: at most {}", limit(Aim::WaitP50))),
        (
            "CPU",
            format!(
                "of grace periods where no thread waits, over tick's: at most {}",
                limit(Aim::Cpu)
            ),
        ),
        ("aims", "whether all that the line is asked for is met".to_owned()),
    ])?;
    let all = judged.iter().flat_map(|judged| &judged.targets);
    let (reached, not): (Vec<&Target>, Vec<&Target>) = all.partition(|target| target.reached);
    output.heading("Together")?;
    output.paragraph(format!("Aims that are met: {}; missed: {}.", reached.len(), not.len()))?;
    for judged in judged {
        for target in judged.targets.iter().filter(|target| !target.reached) {
            output.line(miss(judged, target))?;
        }
    }
    Ok(())
}

/// An aim that is not reached, in words.
fn miss(judged: &Judged, target: &Target) -> String {
    format!(
        "missed: {}: {} {} of {}'s; {} {} is asked",
        judged.case.workload.name,
        name(target.aim),
        ratio(target.ratio_permille),
        target.against,
        if target.aim.is_throughput() { "at least" } else { "at most" },
        ratio(target.limit_permille)
    )
}

/// What each engine has shown.
fn figures(judged: &Judged) -> comfy_table::Table {
    let header =
        ["engine", "updates/s", "reads/s", "wait p50", "p99", "max", "CPU", "fences/s", "memory"];
    let mut table = output::table(&header);
    output::numeric(&mut table, 1..header.len());
    for (engine, report) in Algorithm::NAMES.into_iter().zip(&judged.reports) {
        table.add_row(row(engine, report));
    }
    table
}

fn row(engine: &str, report: &Report) -> Vec<String> {
    let a_second = |count: u64| {
        let seconds = report.duration_ns as f64 / 1e9;
        if count == 0 { String::new() } else { units::figures(count as f64 / seconds) }
    };
    // Where none waits without hurry, those in a hurry.
    let waits = match report.waits_ns.count {
        0 => &report.waits_expedited_ns,
        _ => &report.waits_ns,
    };
    let time = |ns: u64| if ns == 0 { String::new() } else { units::nanoseconds(ns as f64) };
    let peak = report.callbacks.waiting_bytes_peak;
    vec![
        engine.to_owned(),
        a_second(report.updates),
        a_second(report.reads),
        time(waits.p50),
        time(waits.p99),
        time(waits.max),
        super::metric::percent(report.overhead_ppm()),
        a_second(report.membarriers),
        if peak == 0 { String::new() } else { units::bytes(peak) },
    ]
}

fn table(judged: &[Judged]) -> comfy_table::Table {
    let header: Vec<&str> =
        ["workload"].into_iter().chain(Aim::ALL.map(column)).chain(["aims"]).collect();
    let mut table = output::table(&header);
    output::numeric(&mut table, 1..=Aim::ALL.len());
    for judged in judged {
        let mut row = vec![Cell::new(judged.case.workload.name)];
        let target = |aim| judged.targets.iter().find(|target| target.aim == aim);
        row.extend(Aim::ALL.map(|aim| cell(target(aim))));
        let all_reached = judged.targets.iter().all(|target| target.reached);
        row.push(match all_reached {
            true => Cell::new("met").fg(Color::Green),
            false => Cell::new("missed").fg(Color::Red),
        });
        table.add_row(row);
    }
    table
}

fn cell(target: Option<&Target>) -> Cell {
    let Some(target) = target else {
        return Cell::new("");
    };
    let cell = Cell::new(ratio(target.ratio_permille));
    if target.reached { cell } else { cell.fg(Color::Red) }
}

/// Thousandths as a ratio.
fn ratio(permille: u64) -> String {
    match permille {
        // 0.9999 is not 1, and 0.970 is not 0.97 if that is the limit.
        permille if permille < 10_000 => format!("{:.3}", permille as f64 / 1_000.0),
        permille => units::figures(permille as f64 / 1_000.0),
    }
}

/// The document that `--json` writes.
#[derive(Debug, Serialize)]
struct Document<'a> {
    interrupted: bool,
    quick: bool,
    judged: &'static str,
    reached: usize,
    not_reached: usize,
    cases: &'a [Judged],
}

#[derive(Debug, Serialize)]
struct ReportOut<'a> {
    engine: &'static str,
    overhead_ppm: u64,
    #[serde(flatten)]
    report: &'a Report,
}

fn document(judged: &[Judged], quick: bool, interrupted: bool) -> Document<'_> {
    let count = |reached| {
        let all = judged.iter().flat_map(|judged| &judged.targets);
        all.filter(|target| target.reached == reached).count()
    };
    Document {
        interrupted,
        quick,
        judged: suite::JUDGED,
        reached: count(true),
        not_reached: count(false),
        cases: judged,
    }
}

impl Serialize for Judged {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Case { workload, options } = &self.case;
        let reports = Algorithm::NAMES.into_iter().zip(&self.reports);
        let reports = reports.map(|(engine, report)| {
            let overhead_ppm = report.overhead_ppm();
            ReportOut { engine, overhead_ppm, report }
        });
        let mut object = serializer.serialize_map(None)?;
        object.serialize_entry("name", workload.name)?;
        object.serialize_entry("what", workload.what)?;
        object.serialize_entry("cpus", &options.cpus)?;
        object.serialize_entry("targets", &self.targets)?;
        object.serialize_entry("reports", &reports.collect::<Vec<_>>())?;
        object.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(aim: Aim, ratio_permille: u64, reached: bool) -> Target {
        let limit_permille = aim.limit_permille();
        Target { aim, against: "tick", ratio_permille, limit_permille, reached }
    }

    fn judged(targets: Vec<Target>) -> Judged {
        let case = suite::cases(true).into_iter().next().unwrap();
        Judged { case, reports: Vec::new(), targets }
    }

    #[test]
    fn an_aim_that_is_not_reached_is_named_and_only_a_new_one_is_broken() {
        let all = [judged(vec![target(Aim::Updates, 999, true), target(Aim::Cpu, 1_234, false)])];
        assert_eq!(broken(&all, &[]).len(), 1);
        assert!(broken(&all, &[("idle", Aim::Cpu)]).is_empty());
        assert_eq!(broken(&all, &[("idle", Aim::Updates)]).len(), 1);
        assert_eq!(
            miss(&all[0], &all[0].targets[1]),
            "missed: idle: CPU time of grace periods 1.234 of tick's; at most 1.100 is asked"
        );
        let text = table(&all).to_string();
        let line = text.lines().nth(2).unwrap();
        assert!(line.contains("0.999") && line.contains("1.234"), "{text}");
        assert!(line.contains("missed"), "{text}");
    }

    #[test]
    fn a_case_without_all_its_engines_is_left_out() {
        let cases: Vec<Case> = suite::cases(true).into_iter().take(1).collect();
        let entries = entries(&cases);
        assert_eq!(entries.len(), Algorithm::NAMES.len());
        let reports = entries.iter().map(|_| None).collect();
        assert!(judge(cases, &entries, reports).is_empty());
    }

    #[test]
    fn known_misses_are_of_cases_that_there_are() {
        let cases = suite::cases(false);
        for (known, _) in KNOWN_MISSES {
            assert!(cases.iter().any(|case| case.workload.name == *known), "{known}");
        }
    }
}
