//! `rcu simulate --suite`: the default engine against every fixed one, on every workload of the
//! suite.
//!
//! What is asked is in `simulate::suite`; here it is run and told. An aim that is not reached is
//! shown as such. Those that were not when they were recorded are listed ([`KNOWN_MISSES`]): since
//! a simulation gives the same bytes on every machine, another one is a change for the worse, and
//! the exit code is 1.

use std::time::Duration;

use bench::units;
use comfy_table::{Cell, Color};
use serde::Serialize;
use simulate::suite::{self, Aim, Case, Target};
use simulate::{EngineKind, Report};

use super::pool::{self, Job, Watch};
use super::{product, what_if};
use crate::exit::{Exit, Failure};
use crate::output::{self, Output};

const SCHEMA: &str = "quiescence/simulate-suite";
const VERSION: u32 = 2;

/// Aims that were not reached when they were recorded: case and aim, of either size of the suite.
const KNOWN_MISSES: &[(&str, Aim)] = &[
    // A ninth more than tick, which lets sixteen times as much memory pile up: ours is near its
    // limit.
    ("update-flood/64", Aim::Cpu),
    // poll runs what the flooding CPUs queue on an idle one; but its waits are 140 times as long.
    ("mixed/64", Aim::Throughput),
];

/// A case with one engine.
#[derive(Clone, Debug)]
struct Entry {
    /// The case's place.
    case: usize,
    name: String,
    setup: simulate::Setup,
    workload: simulate::Workload,
    engine: EngineKind,
}

impl Job for Entry {
    type Result = Report;

    fn name(&self) -> String {
        format!("{}, {}", self.name, self.engine.name())
    }

    fn about(&self) -> Duration {
        product::about(&self.setup, &self.engine, &self.workload)
    }

    fn run(&self, watch: &Watch<'_>) -> Option<Report> {
        what_if::simulate(&self.setup, &self.engine, &self.workload, watch)
    }
}

/// A case, what its engines have shown, and what came of the aims.
#[derive(Clone, Debug)]
struct Judged {
    case: Case,
    reports: Vec<Report>,
    targets: Vec<Target>,
}

impl Judged {
    fn target(&self, aim: Aim) -> Option<&Target> {
        self.targets.iter().find(|target| target.aim == aim)
    }
}

/// Runs the suite and tells.
pub(super) fn run(quick: bool, output: &mut Output) -> Result<Exit, Failure> {
    let cases = suite::cases(quick);
    let entries = entries(&cases);
    let reports = pool::run(&entries, output)?;
    let judged = judge(cases, &entries, reports);
    let interrupted = output.interrupt().requested();
    output.json(&document(&judged, quick, interrupted))?;
    print(&judged, output)?;
    let broken = broken(&judged, KNOWN_MISSES);
    for (case, target) in &broken {
        output.note(format!("{case}: {} was met when it was recorded", name(target.aim)));
    }
    Ok(match (interrupted, broken.is_empty()) {
        (true, _) => Exit::Interrupted,
        (false, true) => Exit::Ok,
        (false, false) => Exit::Violation,
    })
}

fn entries(cases: &[Case]) -> Vec<Entry> {
    let of = |(place, case): (usize, &Case)| {
        let entry = |engine: EngineKind| Entry {
            case: place,
            name: case.name.clone(),
            setup: case.setup.clone(),
            workload: case.workload.clone(),
            engine,
        };
        suite::engines(case).into_iter().map(entry).collect::<Vec<_>>()
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
        judged.targets.iter().map(|target| (judged.case.name.as_str(), target))
    };
    let is_broken = |(case, target): &(&str, &Target)| {
        !target.reached && !known.iter().any(|(name, aim)| name == case && *aim == target.aim)
    };
    judged.iter().flat_map(of).filter(is_broken).collect()
}

/// Columns of the table, in their order.
const AIMS: [Aim; 6] =
    [Aim::Throughput, Aim::LatencyP50, Aim::LatencyMean, Aim::LatencyP99, Aim::Cpu, Aim::Budget];

/// The head of its column.
const fn column(aim: Aim) -> &'static str {
    match aim {
        Aim::Throughput => "ops",
        Aim::LatencyP50 => "p50",
        Aim::LatencyMean => "mean",
        Aim::LatencyP99 => "p99",
        Aim::Cpu => "CPU",
        Aim::Budget => "budget",
    }
}

/// In words.
const fn name(aim: Aim) -> &'static str {
    match aim {
        Aim::Throughput => "operations",
        Aim::LatencyP50 => "median wait",
        Aim::LatencyMean => "mean wait",
        Aim::LatencyP99 => "wait of 99 in 100",
        Aim::Cpu => "CPU time",
        Aim::Budget => "budget",
    }
}

fn print(judged: &[Judged], output: &mut Output) -> Result<(), Failure> {
    output.heading(format!("{} with its default numbers, over the others", suite::JUDGED))?;
    output.table(table(judged))?;
    let limit = |aim: Aim| units::figures(aim.limit_permille() as f64 / 1_000.0);
    output.entries([
        ("best fixed", "the engine that does most operations here, of all but this one".to_owned()),
        ("ops", format!("operations, over the best fixed: at least {}", limit(Aim::Throughput))),
        (
            "p50, mean, p99",
            format!("latency of tasks that wait, over poll's: at most {}", limit(Aim::LatencyP50)),
        ),
        (
            "CPU",
            format!(
                "CPU time of the engine where nobody waits, over tick's: at most {}",
                limit(Aim::Cpu)
            ),
        ),
        (
            "budget",
            "share of its budget that it uses while nobody waits, unless memory is near its limit: \
             at most 1"
                .to_owned(),
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
    let against = target.against.as_deref().map_or("it".to_owned(), |name| format!("{name}'s"));
    format!(
        "missed: {}: {} {} of {against}; {} {} is asked",
        judged.case.name,
        name(target.aim),
        ratio(target.ratio_permille),
        if target.aim == Aim::Throughput { "at least" } else { "at most" },
        ratio(target.limit_permille)
    )
}

fn table(judged: &[Judged]) -> comfy_table::Table {
    let names = ["workload/CPUs", "best fixed"];
    let header: Vec<&str> = names.into_iter().chain(AIMS.map(column)).chain(["aims"]).collect();
    let mut table = output::table(&header);
    output::numeric(&mut table, names.len()..names.len() + AIMS.len());
    for judged in judged {
        let best = judged.target(Aim::Throughput).and_then(|target| target.against.as_deref());
        let mut row = vec![Cell::new(&judged.case.name), Cell::new(best.unwrap_or("–"))];
        row.extend(AIMS.map(|aim| cell(judged.target(aim))));
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
    schema: &'static str,
    version: u32,
    interrupted: bool,
    quick: bool,
    judged: &'static str,
    reached: usize,
    not_reached: usize,
    cases: Vec<CaseOut<'a>>,
}

#[derive(Debug, Serialize)]
struct CaseOut<'a> {
    name: &'a str,
    targets: &'a [Target],
    /// Reports of all engines, as `rcu simulate --json` has them.
    reports: &'a [Report],
}

fn document(judged: &[Judged], quick: bool, interrupted: bool) -> Document<'_> {
    let count = |reached| {
        let all = judged.iter().flat_map(|judged| &judged.targets);
        all.filter(|target| target.reached == reached).count()
    };
    Document {
        schema: SCHEMA,
        version: VERSION,
        interrupted,
        quick,
        judged: suite::JUDGED,
        reached: count(true),
        not_reached: count(false),
        cases: judged.iter().map(case_out).collect(),
    }
}

fn case_out(judged: &Judged) -> CaseOut<'_> {
    CaseOut { name: &judged.case.name, targets: &judged.targets, reports: &judged.reports }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(aim: Aim, ratio_permille: u64, reached: bool) -> Target {
        let against = (aim != Aim::Budget).then(|| "tick".to_owned());
        let limit_permille = aim.limit_permille();
        Target { aim, against, ratio_permille, limit_permille, reached }
    }

    fn judged(targets: Vec<Target>) -> Judged {
        let case = suite::cases(true).into_iter().next().unwrap();
        Judged { case, reports: Vec::new(), targets }
    }

    #[test]
    fn an_aim_that_is_not_reached_is_named_and_only_a_new_one_is_broken() {
        let all =
            [judged(vec![target(Aim::Throughput, 999, true), target(Aim::Cpu, 1_234, false)])];
        assert_eq!(broken(&all, &[]).len(), 1);
        assert!(broken(&all, &[("idle/4", Aim::Cpu)]).is_empty());
        assert_eq!(broken(&all, &[("idle/4", Aim::Budget)]).len(), 1);
        assert_eq!(
            miss(&all[0], &all[0].targets[1]),
            "missed: idle/4: CPU time 1.234 of tick's; at most 1.100 is asked"
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
        assert_eq!(entries.len(), EngineKind::all().len());
        let reports = entries.iter().map(|_| None).collect();
        assert!(judge(cases, &entries, reports).is_empty());
    }

    #[test]
    fn known_misses_are_of_cases_that_there_are() {
        let names: Vec<String> =
            [true, false].into_iter().flat_map(suite::cases).map(|case| case.name).collect();
        for (case, _) in KNOWN_MISSES {
            assert!(names.iter().any(|name| name == case), "{case}");
        }
    }
}
