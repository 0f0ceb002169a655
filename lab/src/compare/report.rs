//! A comparison as tables and as JSON: the figures that decide, and what the change costs whom.

use std::collections::BTreeMap;

use bench::statistics::spread;
use bench::suites::rounds::{Metric, Unit};
use bench::units;
use comfy_table::Cell;
use serde_json::{Value, json};

use super::contest::{Base, Contest, Match, Pair};
use super::decide::{ROUNDS_MIN, Verdict};
use super::load::{Key, Quality};
use crate::bench::report::number_of;
use crate::exit::Exit;
use crate::html::Markup;
use crate::machine::Machine;
use crate::output::{self, Output, SchemaId, merged};
use crate::plot::{self, Axis, Interval, Scale};

const SCHEMA: SchemaId = SchemaId("quiescence/compare", 3);

/// Prints and writes what was found; how the command ends.
pub(super) fn tell(contest: &Contest, output: &mut Output) -> Exit {
    print(contest, output);
    output.findings(SCHEMA, document(contest));
    output.exit(contest.exit())
}

/// Prints how good the runs were, all figures, then the verdict.
fn print(contest: &Contest, output: &mut Output) {
    match &contest.counted {
        Some(counted) => output.paragraph(counted),
        None => output.paragraph(runs(&contest.runs)),
    }
    for each in &contest.matches {
        output.heading(&each.load);
        output.table(table(each));
        for pair in &each.pairs {
            if let Some(reason) = &pair.missing {
                let some = if pair.base.is_empty() { "" } else { " in some pairs" };
                output.paragraph(format_args!("{}: no figure{some}: {reason}", pair.key));
            }
        }
        output.picture(|| changes(each, contest.threshold_percent));
    }
    output.heading(format_args!("Verdict: {}", contest.verdict().words()));
    output.paragraph(sentence(contest));
}

fn runs(runs: &BTreeMap<Quality, u32>) -> String {
    let [calm, disturbed, incomplete, unknown] = Quality::ALL.map(|quality| runs[&quality]);
    let all = calm + disturbed + incomplete + unknown;
    let of =
        format!("Of {all} runs {calm} were calm, {disturbed} disturbed, {incomplete} incomplete");
    match unknown {
        0 => format!("{of}."),
        _ => format!("{of}; {unknown} are of versions that do not report it."),
    }
}

/// All figures of a load; the verdicts of those that do not decide are in brackets.
fn table(each: &Match) -> comfy_table::Table {
    let header = ["", "base", "candidate", "change", "interval", "pairs", "verdict"];
    let row = |pair: &Pair| {
        let [base, new] = [&pair.base, &pair.new].map(|costs| spread(costs).median);
        let [change, interval] = match pair.ratio {
            None => ["–", "–"].map(str::to_owned),
            Some(ratio) if pair.key.unit == "instructions" => {
                [format!("{:+.2}, {}", new - base, change(ratio.median)), String::new()]
            }
            Some(ratio) => {
                let interval = format!("{} to {}", change(ratio.low), change(ratio.high));
                [change(ratio.median), interval]
            }
        };
        let [base, new] = [base, new].map(|cost| shown(&pair.key, cost));
        let cells =
            [pair.key.to_string(), base, new, change, interval, pair.base.len().to_string()];
        cells.into_iter().map(Cell::new).chain([verdict(pair)]).collect::<Vec<_>>()
    };
    let measured = each.pairs.iter().filter(|pair| !pair.base.is_empty());
    output::table(&header, 1..6, measured.map(row))
}

fn verdict(pair: &Pair) -> Cell {
    use comfy_table::Color::{Green, Red};
    let words = pair.ratio.map_or("too few pairs", |_| pair.verdict.words());
    let cell = Cell::new(if pair.decides { words.to_owned() } else { format!("({words})") });
    match pair.verdict {
        Verdict::Better => cell.fg(Green),
        Verdict::Worse => cell.fg(Red),
        Verdict::Same | Verdict::TooNoisy => cell,
    }
}

/// The changes of one load with their intervals, and the threshold beside none.
fn changes(each: &Match, threshold_percent: f64) -> Markup {
    let percent = |ratio: f64| 100.0 * (ratio - 1.0);
    let row = |pair: &Pair| {
        let ratio = pair.ratio.filter(|ratio| ratio.median.is_finite())?;
        let text = format!("{} {}", change(ratio.median), pair.verdict.words());
        let figures = <[f64; 3]>::from(ratio).map(percent);
        Some(Interval::of(pair.key.to_string(), pair.decides, figures, text))
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
    plot::intervals(title, axis, each.pairs.iter().filter_map(row).collect())
}

/// A ratio as a change in per cent.
fn change(ratio: f64) -> String {
    if !ratio.is_finite() {
        return "–".to_owned();
    }
    format!("{:+.1} %", 100.0 * (ratio - 1.0))
}

/// A cost in the unit of the metric.
fn shown(key: &Key, cost: f64) -> String {
    let (unit, value) = match &*key.unit {
        "instructions" => return units::figures(cost),
        "1/s" => (Unit::PerSecond, 1e9 / cost),
        "objects" => (Unit::Objects, cost - 1.0),
        "bytes" => (Unit::Bytes, cost),
        _ => (Unit::Nanoseconds, cost),
    };
    number_of(&Metric { name: "", unit }, value)
}

/// The verdict on all, for people.
fn sentence(contest: &Contest) -> String {
    let deciding = || contest.pairs().filter(|pair| pair.decides);
    let count = |verdict| deciding().filter(|pair| pair.verdict == verdict).count();
    let counts = [Verdict::Worse, Verdict::Better, Verdict::Same, Verdict::TooNoisy]
        .map(|verdict| format!("{} {}", count(verdict), verdict.words()))
        .join(", ");
    let percent = units::percent(contest.threshold_percent);
    let mut text = format!(
        "Of {} figures that decide: {counts}. A difference below {percent} % is none",
        deciding().count()
    );
    text += match contest.counted {
        Some(_) => "; what seems to differ is counted five times, and must differ each time.",
        None => "; the intervals are those of 99.8 %, shared out among the figures.",
    };
    if deciding().any(|pair| pair.ratio.is_none()) {
        text += &format!(" An interval needs {ROUNDS_MIN} pairs.");
    }
    if contest.pairs().any(|pair| !pair.decides) {
        text += " Verdicts in brackets do not decide.";
    }
    if contest.verdict() == Verdict::TooNoisy {
        text += " More --time, a larger --threshold or a quieter machine decides more.";
    }
    text
}

/// The document of a comparison.
fn document(contest: &Contest) -> Value {
    let of = |Match { load, pairs }: &Match| {
        let figure = |pair: &Pair| merged([json!({ "load": load }), json!(pair)]);
        pairs.iter().map(figure).collect::<Vec<_>>()
    };
    json!({
        "machine": Machine::detect(),
        "candidate": contest.new.path.display().to_string(),
        // The program, or null where saved rounds were compared with.
        "base": match &contest.base {
            Base::Program(program) => Some(program.path.display().to_string()),
            Base::Saved(_) => None,
        },
        "threshold_percent": contest.threshold_percent,
        "seed": contest.seed,
        "counted": contest.counted,
        "runs": contest.runs,
        "verdict": contest.verdict(),
        "figures": contest.matches.iter().flat_map(of).collect::<Vec<_>>(),
    })
}
