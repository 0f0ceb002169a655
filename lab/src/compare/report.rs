//! A comparison as tables and as JSON: the figures that decide, and what the change costs whom.

use bench::statistics::spread;
use bench::suites::rounds::{Metric, Unit};
use bench::units;
use comfy_table::Cell;
use serde::Serialize;

use super::contest::{Base, Contest, Match, Pair, Runs};
use super::decide::Verdict;
use super::load::Key;
use crate::bench::report::number_of;
use crate::exit::Failure;
use crate::json::Middle;
use crate::machine::Machine;
use crate::output::{self, Output, SchemaId};
use crate::plot::{Axis, Interval, Scale};
use crate::record::Block;

pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/compare", 2);

/// Prints how good the runs were, what decides, then all figures as a matrix, then the verdict.
pub(super) fn print(contest: &Contest, output: &mut Output) -> Result<(), Failure> {
    output.paragraph(runs(&contest.runs))?;
    for each in &contest.matches {
        output.heading(&each.load)?;
        output.table(deciding(each))?;
        for pair in &each.pairs {
            if let Some(reason) = &pair.missing {
                let some = if pair.judged.is_some() { " in some pairs" } else { "" };
                output.paragraph(format_args!("{}: no figure{some}: {reason}", pair.key))?;
            }
        }
        output.plot(|| changes(each, contest.threshold_percent));
    }
    if contest.pairs().count() > 1 {
        output.heading("What the change costs whom (+: more)")?;
        output.table(matrix(contest))?;
    }
    output.heading(format_args!("Verdict: {}", contest.verdict().words()))?;
    output.paragraph(sentence(contest))
}

fn runs(runs: &Runs) -> String {
    let Runs { calm, disturbed, incomplete, unknown } = runs;
    let all = calm + disturbed + incomplete + unknown;
    let of =
        format!("Of {all} runs {calm} were calm, {disturbed} disturbed, {incomplete} incomplete");
    match unknown {
        0 => format!("{of}."),
        _ => format!("{of}; {unknown} are of versions that do not say."),
    }
}

fn deciding(each: &Match) -> comfy_table::Table {
    let header = ["", "base", "candidate", "change", "interval", "pairs", "verdict"];
    let mut table = output::table(&header);
    output::numeric(&mut table, 1..6);
    for pair in each.pairs.iter().filter(|pair| pair.decides) {
        let Some((ratio, verdict)) = pair.judged else {
            continue;
        };
        let [base, new] = [&pair.base, &pair.new].map(|costs| shown(&pair.key, costs));
        let interval = format!("{} to {}", change(ratio.low), change(ratio.high));
        table.add_row([
            pair.key.to_string(),
            base,
            new,
            change(ratio.median),
            interval,
            pair.base.len().to_string(),
            verdict.words().to_owned(),
        ]);
    }
    table
}

/// The changes of one load with their intervals, and the threshold beside none.
fn changes(each: &Match, threshold_percent: f64) -> Block {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let row = |pair: &Pair| {
        let (ratio, verdict) = pair.judged.filter(|(ratio, _)| ratio.median.is_finite())?;
        Some(Interval {
            name: pair.key.to_string(),
            value: percent(ratio.median),
            low: percent(ratio.low),
            high: percent(ratio.high),
            rounds: Vec::new(),
            published: None,
            text: format!("{} {}", change(ratio.median), verdict.words()),
            ours: pair.decides,
        })
    };
    let axis = Axis {
        title: "change of the cost, % of the base's".to_owned(),
        scale: Scale::Linear,
        label: |percent| match percent {
            0.0 => "0 %".to_owned(),
            _ => change(1.0 + percent / 100.0),
        },
        guides: vec![-threshold_percent, 0.0, threshold_percent],
    };
    let title = "Changes with their intervals; in green those that decide. Below the threshold \
                 (dashed, beside 0) a difference is none.";
    Block::Intervals {
        title: title.to_owned(),
        axis,
        rows: each.pairs.iter().filter_map(row).collect(),
    }
}

/// A ratio as a change in per cent.
fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "–".to_owned();
    }
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
}

/// The median of costs, in the unit of the metric.
fn shown(key: &Key, costs: &[f64]) -> String {
    let median = spread(costs).median;
    let (unit, value) = match &*key.unit {
        "1/s" => (Unit::PerSecond, 1e9 / median),
        "objects" => (Unit::Objects, median - 1.0),
        "bytes" => (Unit::Bytes, median),
        _ => (Unit::Nanoseconds, median),
    };
    number_of(&Metric { name: "", unit }, value)
}

/// Loads, cases and designs down, metrics across.
fn matrix(contest: &Contest) -> comfy_table::Table {
    let mut metrics: Vec<&str> = Vec::new();
    for pair in contest.pairs() {
        if !metrics.contains(&&*pair.key.metric) {
            metrics.push(&pair.key.metric);
        }
    }
    let mut header = vec!["", "of"];
    header.extend(&metrics);
    let mut table = output::table(&header);
    for each in &contest.matches {
        let mut rows: Vec<(&str, &str)> = Vec::new();
        for pair in &each.pairs {
            let row = (&*pair.key.case, &*pair.key.rival);
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        for (case, rival) in rows {
            let of = |metric: &&str| {
                let is_it = |pair: &&Pair| {
                    (&*pair.key.case, &*pair.key.rival, &*pair.key.metric) == (case, rival, *metric)
                };
                each.pairs.iter().find(is_it).map_or_else(|| Cell::new(""), cell)
            };
            let head = [case, rival].map(Cell::new).into_iter();
            table.add_row(head.chain(metrics.iter().map(of)).collect::<Vec<_>>());
        }
    }
    table
}

fn cell(pair: &Pair) -> Cell {
    use comfy_table::Color::{Green, Red};
    let Some((ratio, verdict)) = pair.judged else {
        return Cell::new("–");
    };
    let text = match verdict {
        Verdict::Same => "same".to_owned(),
        Verdict::TooNoisy => format!("{} ?", change(ratio.median)),
        Verdict::Better | Verdict::Worse => {
            format!("{} {}", change(ratio.median), verdict.words())
        }
    };
    match verdict {
        Verdict::Better => Cell::new(text).fg(Green),
        Verdict::Worse => Cell::new(text).fg(Red),
        Verdict::Same | Verdict::TooNoisy => Cell::new(text),
    }
}

/// The verdict on all, for people.
fn sentence(contest: &Contest) -> String {
    let deciding = || contest.pairs().filter(|pair| pair.decides);
    let count = |verdict| deciding().filter(|pair| pair.verdict() == verdict).count();
    let counts = [Verdict::Worse, Verdict::Better, Verdict::Same, Verdict::TooNoisy]
        .map(|verdict| format!("{} {}", count(verdict), verdict.words()))
        .join(", ");
    let percent = units::percent(contest.threshold_percent);
    let mut text = format!(
        "Of {} figures that decide: {counts}. A difference below {percent} % is \
         none; the intervals are those of 99.8 %, shared out among the figures.",
        deciding().count()
    );
    if contest.verdict() == Verdict::TooNoisy {
        text += " More --time, a larger --threshold or a quieter machine decides more.";
    }
    text
}

/// The document that `--json` writes.
#[derive(Debug, Serialize)]
pub(super) struct Document<'a> {
    interrupted: bool,
    machine: Machine,
    candidate: String,
    /// The program, or null where saved rounds were compared with.
    base: Option<String>,
    threshold_percent: f64,
    seed: u64,
    runs: &'a Runs,
    verdict: Verdict,
    figures: Vec<FigureOut<'a>>,
}

#[derive(Debug, Serialize)]
struct FigureOut<'a> {
    load: String,
    #[serde(flatten)]
    key: &'a Key,
    decides: bool,
    verdict: Verdict,
    /// Why the last pair without this figure has none.
    missing: Option<&'a str>,
    ratio: Option<Middle>,
    base: Costs<'a>,
    candidate: Costs<'a>,
}

#[derive(Debug, Serialize)]
struct Costs<'a> {
    cost: Option<Middle>,
    rounds: &'a [f64],
}

/// The document of a comparison.
pub(super) fn document(contest: &Contest, interrupted: bool) -> Document<'_> {
    let figures = contest.matches.iter().flat_map(|each| {
        each.pairs.iter().map(|pair| {
            let judged = pair.judged;
            let costs = |rounds| Costs { cost: judged.map(|_| spread(rounds).into()), rounds };
            FigureOut {
                load: each.load.to_string(),
                key: &pair.key,
                decides: pair.decides,
                verdict: pair.verdict(),
                missing: pair.missing.as_deref(),
                ratio: judged.map(|(ratio, _)| ratio.into()),
                base: costs(&pair.base),
                candidate: costs(&pair.new),
            }
        })
    });
    Document {
        interrupted,
        machine: Machine::detect(),
        candidate: contest.new.path.display().to_string(),
        base: match &contest.base {
            Base::Program(program) => Some(program.path.display().to_string()),
            Base::Saved(_) => None,
        },
        threshold_percent: contest.threshold_percent,
        seed: contest.seed,
        runs: &contest.runs,
        verdict: contest.verdict(),
        figures: figures.collect(),
    }
}
