//! `rcu simulate --suite`: the library's default engine against its fixed ones and liburcu's
//! algorithm, on every workload of the suite.
//!
//! What is asked is in `simulate::ours::suite`; here it is run and told. An aim that is not reached
//! is shown as such. Those that were not when they were recorded are listed ([`RECORDED`]):
//! since a simulation gives the same bytes on every machine, another one is a change for the worse,
//! and the exit code is 1.

use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use bench::{data, units};
use comfy_table::{Cell, Color};
use serde::Deserialize;
use serde_json::{Value, json};
use simulate::ours::suite::{self, Aim, Case, Target};
use simulate::ours::workloads::Workload;
use simulate::ours::{self, Algorithm, Options, Report};

use super::options::SimulateArgs;
use super::pool::{self, Job};
use crate::exit::{Exit, Failure, Result};
use crate::output::{self, Output, SchemaId, merged};

const SCHEMA: SchemaId = SchemaId("quiescence/simulate-suite", 3);

/// What `suite.toml` says.
#[derive(Deserialize)]
struct Recorded {
    /// The aims that were not reached, with their cases.
    misses: Vec<(String, Aim)>,
    /// Those that only shorter runs do not reach.
    misses_quick: Vec<(String, Aim)>,
    /// Each aim in words, and as the head of its column.
    words: HashMap<Aim, [String; 2]>,
    /// What the columns are.
    columns: Vec<[String; 2]>,
}

static RECORDED: LazyLock<Recorded> = LazyLock::new(|| data::read_toml(include_str!("suite.toml")));

/// A run with these options, which can be simulated.
pub(super) fn job(name: String, options: Options) -> Job<Report> {
    Job {
        name,
        // Most of them take as long as a few hundredths of their virtual time.
        about: Duration::from_nanos(options.duration / 10).max(Duration::from_millis(10)),
        run: Box::new(move |at| {
            let progress = &mut |now| at(now, options.warm_up + options.duration);
            ours::run_with_progress(&options, progress).ok().flatten()
        }),
    }
}

/// A case, what came of the aims, and what each of [`Algorithm::NAMES`] has shown.
#[derive(Clone, Debug)]
struct Judged {
    case: Case,
    targets: Vec<Target>,
    reports: Vec<Report>,
}

impl Judged {
    fn shown(&self) -> impl Iterator<Item = (&'static str, &Report)> {
        Algorithm::NAMES.into_iter().zip(&self.reports)
    }
}

/// Runs the suite and tells.
pub(super) fn run(args: &SimulateArgs, output: &mut Output) -> Result<Exit> {
    let cases = cases(args)?;
    let reports = pool::run(jobs(&cases), output);
    let judged = judge(cases, &reports);
    output.findings(SCHEMA, document(&judged, args.quick));
    print(&judged, output);
    // What is asked was recorded on the machines that the workloads have.
    let quick = if args.quick { &RECORDED.misses_quick[..] } else { &[] };
    let broken = match args.on_cpus {
        None => broken(&judged, &[&RECORDED.misses, quick].concat()),
        Some(_) => Vec::new(),
    };
    for (judged, target) in &broken {
        let (case, aim) = (judged.case.workload.name, &RECORDED.words[&target.aim][0]);
        output.note(format!("{case}: {aim} was met when it was recorded"));
    }
    Ok(super::exit(output, !broken.is_empty()))
}

/// The cases that were asked for.
fn cases(args: &SimulateArgs) -> Result<Vec<Case>> {
    let is_asked_for = |case: &Case| {
        args.only.is_empty() || args.only.iter().any(|only| only == case.workload.name)
    };
    let on_machine = |case: Case| {
        let case = args.on_cpus.map_or(case.clone(), |cpus| case.on_cpus(cpus));
        let refused = |reason| Failure::usage(format!("{}: {reason}", case.workload.name));
        case.options.check().map_err(refused)?;
        Ok(case)
    };
    suite::cases(args.quick).into_iter().filter(is_asked_for).map(on_machine).collect()
}

/// Each case with each engine.
fn jobs(cases: &[Case]) -> Vec<Job<Report>> {
    let of = |case: &Case| {
        let of_engine = |name: &str| {
            let algorithm = Algorithm::named(name).expect("each name is known");
            job(format!("{}, {name}", case.workload.name), case.under(algorithm))
        };
        Algorithm::NAMES.map(of_engine)
    };
    cases.iter().flat_map(of).collect()
}

/// Puts together what belongs together: each case has a report of each engine. One that was
/// interrupted is left out: a best engine that has not run cannot be compared with.
fn judge(cases: Vec<Case>, reports: &[Option<Report>]) -> Vec<Judged> {
    let judged = |(case, reports): (Case, &[Option<Report>])| {
        let reports = reports.iter().cloned().collect::<Option<Vec<Report>>>()?;
        Some(Judged { targets: suite::judge(&case, &reports), case, reports })
    };
    cases.into_iter().zip(reports.chunks(Algorithm::NAMES.len())).filter_map(judged).collect()
}

/// The aims that are not reached, each with whose it is.
fn missed(judged: &[Judged]) -> impl Iterator<Item = (&Judged, &Target)> {
    let all = judged.iter().flat_map(|one| one.targets.iter().map(move |target| (one, target)));
    all.filter(|(_, target)| !target.reached)
}

/// Those of them that were reached when they were recorded.
fn broken<'a>(judged: &'a [Judged], known: &[(String, Aim)]) -> Vec<(&'a Judged, &'a Target)> {
    let is_known = |name: &str, aim| known.iter().any(|own| own.0 == name && own.1 == aim);
    let missed = missed(judged);
    missed.filter(|(one, target)| !is_known(one.case.workload.name, target.aim)).collect()
}

fn print(judged: &[Judged], output: &mut Output) {
    for judged in judged {
        let Case { workload: Workload { name, what, cpus: own, .. }, options } = &judged.case;
        let cpus = options.cpus;
        let larger = if cpus == *own { "" } else { "in proportion on " };
        output.heading(format!("{name}: {what}; {larger}{cpus} CPUs"));
        output.table(output::table(&FIGURES, 1.., judged.shown().map(row)));
    }
    output.heading("What the columns are");
    output.entries(RECORDED.columns.iter().map(|[head, what]| (head, what)));
    output.heading(format!("{} with its default numbers, over the others", suite::JUDGED));
    output.table(table(judged));
    let limit = |aim: Aim| units::figures(aim.limit_permille() as f64 / 1_000.0);
    let [best, waits, cpu] = [Aim::Updates, Aim::WaitP50, Aim::Cpu].map(limit);
    output.entries([
        ("updates, reads", format!("over the best of poll, tick and token: at least {best}")),
        ("p50 to hurried", format!("waits over poll's: at most {waits}")),
        ("CPU", format!("of grace periods where no thread waits, over tick's: at most {cpu}")),
        ("aims", "whether all aims of the line are met".to_owned()),
    ]);
    output.heading("Together");
    let [met, not] = counts(judged);
    output.paragraph(format!("Aims met: {met}; missed: {not}."));
    missed(judged).for_each(|(judged, target)| output.paragraph(miss(judged, target)));
}

/// How many aims are met, and how many are not.
fn counts(judged: &[Judged]) -> [usize; 2] {
    let not = missed(judged).count();
    [judged.iter().map(|one| one.targets.len()).sum::<usize>() - not, not]
}

/// An aim that is not reached, in words.
fn miss(judged: &Judged, target: &Target) -> String {
    format!(
        "missed: {}: {} {} of {}'s; {} {} is asked",
        judged.case.workload.name,
        RECORDED.words[&target.aim][0],
        ratio(target.ratio_permille),
        target.against,
        if target.aim.is_throughput() { "at least" } else { "at most" },
        ratio(target.limit_permille)
    )
}

const FIGURES: [&str; 9] =
    ["engine", "updates/s", "reads/s", "wait p50", "p99", "max", "CPU", "fences/s", "memory"];

/// What an engine has shown.
fn row((engine, report): (&'static str, &Report)) -> Vec<String> {
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
    let heads = Aim::ALL.map(|aim| &*RECORDED.words[&aim][1]);
    let header: Vec<&str> = ["workload"].into_iter().chain(heads).chain(["aims"]).collect();
    let row = |Judged { case, targets, .. }: &Judged| {
        let target = |aim| {
            let target = targets.iter().find(|target| target.aim == aim);
            target.map_or(Cell::new(""), |one| met(ratio(one.ratio_permille), one.reached))
        };
        let aims = match targets.iter().all(|target| target.reached) {
            true => Cell::new("met").fg(Color::Green),
            false => met("missed".to_owned(), false),
        };
        [&[Cell::new(case.workload.name)][..], &Aim::ALL.map(target), &[aims]].concat()
    };
    output::table(&header, 1..=Aim::ALL.len(), judged.iter().map(row))
}

/// A cell that is red unless what it says is as it should be.
pub(super) fn met(text: String, is_so: bool) -> Cell {
    if is_so { Cell::new(text) } else { Cell::new(text).fg(Color::Red) }
}

/// Thousandths as a ratio.
fn ratio(permille: u64) -> String {
    match permille {
        // 0.9999 is not 1, and 0.970 is not 0.97 if that is the limit.
        u64::MAX => "∞".to_owned(),
        permille if permille < 10_000 => format!("{:.3}", permille as f64 / 1_000.0),
        permille => units::figures(permille as f64 / 1_000.0),
    }
}

/// The document that `--json` writes.
fn document(judged: &[Judged], quick: bool) -> Value {
    let [reached, not_reached] = counts(judged);
    let report = |(engine, report): (&str, &Report)| {
        let own = json!({ "engine": engine, "overhead_ppm": report.overhead_ppm() });
        merged([own, json!(report)])
    };
    let case = |judged: &Judged| {
        json!({
            "name": judged.case.workload.name,
            "what": judged.case.workload.what,
            "cpus": judged.case.options.cpus,
            "targets": judged.targets,
            "reports": judged.shown().map(report).collect::<Vec<_>>(),
        })
    };
    json!({
        "quick": quick,
        "judged": suite::JUDGED,
        "reached": reached,
        "not_reached": not_reached,
        "cases": judged.iter().map(case).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(aim: Aim, ratio_permille: u64, reached: bool) -> Target {
        let limit_permille = aim.limit_permille();
        Target { aim, against: "tick", ratio_permille, limit_permille, reached }
    }

    fn judged(targets: Vec<Target>) -> Judged {
        let mut cases = suite::cases(true).into_iter();
        let case = cases.find(|case| case.workload.name == "idle").expect("it is one of them");
        Judged { case, targets, reports: Vec::new() }
    }

    #[test]
    fn an_aim_that_is_not_reached_is_named_and_only_a_new_one_is_broken() {
        let all = [judged(vec![target(Aim::Updates, 999, true), target(Aim::Cpu, 1_234, false)])];
        assert_eq!(broken(&all, &[]).len(), 1);
        let known = |aim| [("idle".to_owned(), aim)];
        assert!(broken(&all, &known(Aim::Cpu)).is_empty());
        assert_eq!(broken(&all, &known(Aim::Updates)).len(), 1);
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
        assert_eq!(jobs(&cases).len(), Algorithm::NAMES.len());
        assert!(judge(cases, &[const { None }; Algorithm::NAMES.len()]).is_empty());
    }

    #[test]
    fn known_misses_are_of_cases_that_there_are() {
        let cases = suite::cases(false);
        for (known, _) in RECORDED.misses.iter().chain(&RECORDED.misses_quick) {
            assert!(cases.iter().any(|case| case.workload.name == known), "{known}");
        }
    }
}
