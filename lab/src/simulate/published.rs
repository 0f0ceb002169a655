//! `rcu simulate --published`: every published figure beside what the model gives.
//!
//! What does not fit is shown as not fitting. Since a simulation gives the same bytes on every
//! machine, it is also known which rows do not fit: they are listed ([`RECORDED`]). A row that
//! misses and is not in the list fitted when it was recorded: the model has been broken, and the
//! exit code is 1. A row in the list that fits must leave it; a test says so.
//!
//! A row says what share of its number the model's inputs leave free to fail. Where that is too
//! little for the number to leave the band, only what is beyond the inputs is compared, and shown
//! with its sign. Beside the count of figures stands the count of parameters that were fitted. What
//! depends on estimates and on mechanisms is `--vary`'s ([`vary`]).

use std::sync::LazyLock;
use std::time::Duration;

use bench::{data, units};
use comfy_table::{Cell, CellAlignment, Color};
use indexmap::IndexMap;
use serde::Deserialize;
use serde_json::{Value, json};
use simulate::replay::{self, Finding, Fit, Fitted, Part, Role, Row, Variation, typical_factor};

use super::options::typed;
use super::pool::{self, Job};
use super::product::Run;
use super::shape;
use super::vary::{self, Varied};
use super::{curves, what_if};
use crate::distinct::distinct;
use crate::exit::{Exit, Failure, Result};
use crate::output::{self, Output, SchemaId};
use crate::plot::{self, Axis, Interval, Scale};

const SCHEMA: SchemaId = SchemaId("quiescence/simulate-published", 2);

/// What `published.toml` says.
#[derive(Deserialize)]
struct Recorded {
    /// Source and figure of the rows that did not fit.
    misses: Vec<[String; 2]>,
    curves: Vec<Curves>,
}

/// A figure over CPUs, and the words that run it.
#[derive(Deserialize)]
struct Curves {
    title: String,
    lines: Vec<String>,
}

static RECORDED: LazyLock<Recorded> =
    LazyLock::new(|| data::read_toml(include_str!("published.toml")));

/// A row of `kernel.toml`: what a kernel gave that boots, recorded, for it takes an emulator.
#[derive(Deserialize)]
struct Booted {
    source: String,
    /// How the row's figure begins.
    figure: String,
    command: String,
    /// What was expected before it was run.
    predicted: String,
    kernel: String,
    why: String,
}

static BOOTED: LazyLock<Vec<Booted>> = LazyLock::new(|| data::rows(include_str!("kernel.toml")));

/// What the kernel gave for a row, if it was run.
fn booted(row: &Row) -> Option<&'static Booted> {
    BOOTED.iter().find(|one| one.source == row.source && row.figure.starts_with(&one.figure))
}

/// Replays these sources, or all if there are none, and tells; with `vary` also what turns if
/// something is changed.
pub(super) fn run(sources: &[String], vary: bool, output: &mut Output) -> Result<Exit> {
    let is_asked =
        |part: &&Part| sources.is_empty() || sources.iter().any(|own| own == part.source);
    let parts: Vec<&'static Part> = replay::PARTS.iter().filter(is_asked).collect();
    let of_part = |part: &'static Part| (part.variations)().into_iter().map(move |one| (part, one));
    let varying = parts.iter().copied().filter(|_| vary);
    let variations: Vec<_> = varying.flat_map(of_part).collect();
    // Kept for ever: a replay that Ctrl-C leaves behind goes on with them.
    let variations: &'static [(&Part, Variation)] = variations.leak();
    let as_it_is = parts.iter().map(|part| job(part, part.source.to_owned(), part.rows));
    let changed = variations
        .iter()
        .map(|(part, one)| job(part, format!("{}, {}", part.source, one.what), || (one.rows)()));
    let mut results = pool::run(as_it_is.chain(changed), output);
    let varied = results.split_off(parts.len());
    let rows = by_source(results.into_iter().flatten().flatten().collect());
    let varied: Vec<Varied> = variations
        .iter()
        .zip(varied)
        .filter_map(|((_, one), varied)| Some(Varied::new(one, varied?, &rows)))
        .collect();
    let broken = rows.iter().filter(|row| is_broken(row, &RECORDED.misses));
    let broken = broken
        .map(|row| format!("{}: {} fitted when it was recorded", row.source, row.figure))
        .chain(varied.iter().filter_map(Varied::fault));
    let broken: Vec<String> = broken.collect();
    output.findings(SCHEMA, document(&rows, &varied));
    print(&rows, output);
    let has_engines = parts.iter().any(|part| part.source == ENGINES);
    if has_engines && output.has_pictures() && !output.interrupt.requested() {
        curves_over_cpus(output)?;
    }
    if vary {
        vary::print(&varied, output);
    }
    broken.iter().for_each(|text| output.note(text));
    Ok(super::exit(output, !broken.is_empty()))
}

/// The source of the engines over CPUs.
const ENGINES: &str = "usenix2003.table3";

/// Draws the engines of 2003 over CPUs, and says what was run.
fn curves_over_cpus(output: &mut Output) -> Result<()> {
    for Curves { title, lines } in &RECORDED.curves {
        let mut runs: Vec<Run> = Vec::new();
        for line in lines {
            let args = typed(line).map_err(|error| Failure::usage(error.to_string()))?;
            runs.extend(what_if::runs(&args.what_if, output)?);
        }
        let reports = pool::run(runs.iter().map(what_if::job), output);
        let engine = |run: &Run| vec![shape::plain("engine", run.engine.name())];
        output.heading(title);
        output.entries(lines.iter().map(|line| ("rcu simulate", line)));
        let done: Vec<_> = pool::ended(&runs, &reports).collect();
        curves::add(&done, engine, output);
    }
    Ok(())
}

fn job(
    part: &Part,
    what: String,
    rows: impl Fn() -> Vec<Row> + Send + Sync + 'static,
) -> Job<Vec<Row>> {
    Job {
        name: format!("replaying {what}"),
        about: Duration::from_millis(part.about_ms),
        run: Box::new(move |_| Some(rows())),
    }
}

/// Rows of one source together, the sources in the order in which they came first.
fn by_source(mut rows: Vec<Row>) -> Vec<Row> {
    let sources = distinct(rows.iter().map(|row| row.source));
    // The sort is stable.
    rows.sort_by_key(|row| sources.iter().position(|source| *source == row.source));
    rows
}

/// Whether a row misses that did not when it was recorded.
fn is_broken(row: &Row, known: &[[String; 2]]) -> bool {
    row.fit() == Fit::Misses && !is_known(row, known)
}

fn is_known(row: &Row, known: &[[String; 2]]) -> bool {
    known.iter().any(|[source, figure]| *source == row.source && *figure == row.figure)
}

/// What was fitted on these rows.
fn fitted(rows: &[Row]) -> Vec<Fitted> {
    let is_on =
        |row: &Row, one: &Fitted| row.source == one.source && row.figure.starts_with(one.on);
    let is_theirs = |one: &&Fitted| rows.iter().any(|row| is_on(row, one));
    replay::PARTS.iter().flat_map(|part| part.fitted).filter(is_theirs).copied().collect()
}

/// Prints a table for each source, what brings its numbers about and what was fitted on it below
/// it, and how many rows fit.
fn print(rows: &[Row], output: &mut Output) {
    for own in rows.chunk_by(|a, b| a.source == b.source) {
        let (source, mechanisms) = (own[0].source, mechanisms(own));
        output.heading(source);
        output.table(table(own, &mechanisms));
        bars(own, output);
        let marks = (1..).zip(&mechanisms).map(|(number, text)| (number.to_string(), text));
        output.entries(marks);
        let booted = own.iter().filter_map(booted);
        output.entries(booted.map(|one| {
            let Booted { command, predicted, why, .. } = one;
            ("kernel", format!("{}: {command}. Predicted: {predicted}. {why}", one.figure))
        }));
        if own.iter().any(|row| row.fit() != Fit::NotCompared) {
            let own_fitted = fitted(own);
            let names: Vec<&str> = own_fitted.iter().map(|one| one.parameter).collect();
            let names = match names.len() {
                0 => String::new(),
                _ => format!(" Fitted: {}.", names.join("; ")),
            };
            output.paragraph(balance(own, &own_fitted) + &names);
        }
    }
    output.heading("Together");
    output.paragraph(balance(rows, &fitted(rows)));
    output.paragraph(format!(
        "A number fits if the ratio is within {} … {}. Fitted: a parameter was chosen so that it \
         comes out; predicted: it follows from parameters that were chosen without it. Free: the \
         share of our number that the inputs do not fix. Where that is less than {} %, the number \
         could not leave the band, so what the inputs fix is taken off both, and what is left is \
         shown with its sign and compared; ± is the published spread, where both agree to that.",
        Row::FIT.0,
        Row::FIT.1,
        Row::DIFFERENCE_BELOW * 100.0,
    ));
}

/// Draws the numbers of a source that are modelled, those of one unit together, as bars: hollow is
/// published.
fn bars(own: &[Row], output: &mut Output) {
    let mut of_units: IndexMap<&str, Vec<Interval>> = IndexMap::new();
    for row in own.iter().filter(|row| row.fit() != Fit::NotCompared) {
        if let Finding::Number { published, ours: Some(ours), unit } = row.finding {
            let text = format!("{} {unit}", units::figures(ours));
            let bar = Interval::of(&row.figure, true, [ours; 3], text);
            let bar = Interval { published: Some(published), ..bar };
            of_units.entry(unit).or_default().push(bar);
        }
    }
    for (unit, rows) in of_units {
        let is_negative = |row: &Interval| row.value.min(row.published.unwrap_or(0.0)) < 0.0;
        let scale = if rows.iter().any(is_negative) { Scale::Linear } else { Scale::Bars };
        let title = format!("{} in {unit}: bars are ours; hollow: published", own[0].source);
        output.picture(|| plot::intervals(&title, Axis::new(unit, scale, units::figures), rows));
    }
}

/// How many rows fit, how many of them could have failed, and how many parameters that took.
fn balance(rows: &[Row], fitted: &[Fitted]) -> String {
    let [fits, misses, not_compared, free, free_misses] = counts(rows);
    let mut text = format!(
        "{fits} of {} figures fit (inputs or not modelled: {not_compared}). {free} could have \
         failed: {free_misses} of them did",
        fits + misses,
    );
    if let Some(factor) = typical_factor(rows) {
        text += &format!("; the numbers among them are typically off by {factor:.2}x");
    }
    text + &format!(". Fitted parameters: {}.", fitted.len())
}

/// How many rows fit, miss, are not compared, are compared and left free to fail by the inputs, and
/// how many of these miss.
fn counts(rows: &[Row]) -> [usize; 5] {
    let of = |fit| rows.iter().filter(move |row| row.fit() == fit);
    let is_free = |row: &&Row| row.free_share().is_some_and(|share| share > 0.0);
    let [fits, misses, not_compared] =
        [Fit::Fits, Fit::Misses, Fit::NotCompared].map(|fit| of(fit).count());
    let free = rows.iter().filter(is_free).count();
    [fits, misses, not_compared, free, of(Fit::Misses).filter(is_free).count()]
}

/// What brings these rows about, each once: too long for a cell, and often the same.
fn mechanisms(rows: &[Row]) -> Vec<&str> {
    distinct(rows.iter().map(|row| row.mechanism.as_str()))
}

/// Names are kept whole up to this many characters; what is longer is a sentence.
const NAME_MAX: usize = 40;

fn table(rows: &[Row], mechanisms: &[&str]) -> comfy_table::Table {
    let has_booted = rows.iter().any(|row| booted(row).is_some());
    let line = |row: &Row| {
        let [published, ours, ratio] = numbers(row);
        let (word, colour) = verdict(row);
        let right = |text: String| match row.finding {
            Finding::Number { .. } => Cell::new(text).set_alignment(CellAlignment::Right),
            Finding::Statement { .. } => Cell::new(text),
        };
        let word = colour.map_or(Cell::new(word), |colour| Cell::new(word).fg(colour));
        let place = mechanisms.iter().position(|text| *text == row.mechanism);
        let mut cells = vec![
            Cell::new(&row.figure),
            right(published),
            right(ours),
            right(ratio),
            word,
            Cell::new(role(row.role)),
            Cell::new(free(row)).set_alignment(CellAlignment::Right),
            Cell::new(place.map_or(String::new(), |place| (place + 1).to_string())),
        ];
        if has_booted {
            cells.insert(3, Cell::new(booted(row).map_or("", |one| &one.kernel)));
        }
        cells
    };
    let mut header = vec!["figure", "published", "ours", "ratio", "", "role", "free", "why"];
    if has_booted {
        header.insert(3, "kernel");
    }
    let mut table = output::table(&header, [], rows.iter().map(line));
    let is_sentence = rows.iter().any(|row| row.figure.chars().count() > NAME_MAX);
    if let Some(column) = table.column_mut(0).filter(|_| is_sentence) {
        column.remove_constraint();
    }
    table
}

/// Published, ours, ratio, as they are printed.
fn numbers(row: &Row) -> [String; 3] {
    match &row.finding {
        Finding::Number { published, ours, unit } => {
            let with_unit = |value: f64| format!("{} {unit}", plain(value));
            if let Some((published, ours)) = row.compared().filter(|_| row.is_difference()) {
                let signed = |value: f64| format!("{value:+.2} {unit}");
                let ratio = match (row.within_spread(), row.ratio()) {
                    (Some(spread), _) => format!("±{spread:.2}"),
                    (None, Some(ratio)) if ratio > 0.0 => units::figures(ratio),
                    (None, _) => "–".to_owned(),
                };
                return [signed(published), signed(ours), ratio];
            }
            let ours = match row.role {
                Role::Input => String::new(),
                _ => ours.map_or_else(String::new, with_unit),
            };
            let ratio = match row.fit() {
                Fit::NotCompared => String::new(),
                _ => row.ratio().map_or_else(|| "–".to_owned(), units::figures),
            };
            [with_unit(*published), ours, ratio]
        }
        Finding::Statement { published, ours, .. } => {
            [published.clone(), ours.clone(), String::new()]
        }
    }
}

/// The share of our number that the inputs leave free, as it is printed.
fn free(row: &Row) -> String {
    row.free_share().map_or_else(String::new, |share| format!("{:.0} %", share * 100.0))
}

/// A number as short as it is exact enough: 515.1, 46.7, 0.24, 8.
fn plain(value: f64) -> String {
    let digits = match value.abs() {
        size if size >= 1_000.0 => 0,
        size if size >= 100.0 => 1,
        _ => 2,
    };
    units::percent((value * 10_f64.powi(digits)).round() / 10_f64.powi(digits))
}

pub(super) fn verdict(row: &Row) -> (&'static str, Option<Color>) {
    match row.fit() {
        Fit::Fits => ("fits", Some(Color::Green)),
        Fit::Misses => ("does not fit", Some(Color::Red)),
        Fit::NotCompared => ("", None),
    }
}

const fn role(role: Role) -> &'static str {
    match role {
        Role::Fitted => "fitted",
        Role::Predicted => "predicted",
        Role::Input => "input",
        Role::NotModelled => "not modelled",
    }
}

/// The document that `--json` writes.
fn document(rows: &[Row], varied: &[Varied]) -> Value {
    let [fits, misses, not_compared, free, free_misses] = counts(rows);
    json!({
        "fit_low": Row::FIT.0,
        "fit_high": Row::FIT.1,
        "fits": fits,
        "misses": misses,
        "not_compared": not_compared,
        "free": free,
        "free_misses": free_misses,
        "typical_factor": typical_factor(rows),
        "fitted": fitted(rows),
        "rows": rows.iter().map(row_out).collect::<Vec<_>>(),
        "varied": varied.iter().map(Varied::out).collect::<Vec<_>>(),
    })
}

fn row_out(row: &Row) -> Value {
    let (kind, published, ours, unit) = match &row.finding {
        Finding::Number { published, ours, unit } => {
            let kind = if row.is_difference() { "difference" } else { "number" };
            (kind, json!(published), json!(ours), Some(unit))
        }
        Finding::Statement { published, ours, .. } => {
            ("statement", json!(published), json!(ours), None)
        }
    };
    let is_compared = row.fit() != Fit::NotCompared;
    json!({
        "source": row.source,
        "figure": &row.figure,
        "kind": kind,
        "published": published,
        "ours": ours,
        "unit": unit,
        "ratio": row.ratio().filter(|_| is_compared),
        "compared": row.compared(),
        "free_share": row.free_share(),
        "role": role(row.role),
        "verdict": is_compared.then_some(verdict(row).0),
        "fitted_when_recorded": !is_known(row, &RECORDED.misses),
        "kernel": booted(row).map(|one| &one.kernel),
        "mechanism": &row.mechanism,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use simulate::replay::Freedom;
    use simulate::replay::usenix2003::{
        BARRIERS, BURST_US, CALL_EVERY_US, DBENCH_KERNEL_PERCENT, IDLE_LOOK_NS, ROUND_US,
        SECTION_US, SHARE_PERCENT,
    };

    fn number(published: f64, ours: f64) -> Row {
        Row::number("s.t", "f", (published, ours, "ms"), Role::Predicted, "m")
    }

    #[test]
    fn numbers_are_short() {
        let cases =
            [(515.1, "515.1"), (46.7, "46.7"), (0.24, "0.24"), (8.0, "8"), (1234.5, "1235")];
        for (value, expected) in cases {
            assert_eq!(plain(value), expected);
        }
        assert_eq!(numbers(&number(22.47, 20.0)), ["22.47 ms", "20 ms", "0.89"]);
        let input = Row::number("s.t", "f", (0.7, 0.7, "ns"), Role::Input, "p");
        assert_eq!(numbers(&input), ["0.7 ns", "", ""]);
        let none = Row::number("s.t", "f", (7.5, None, "1/s"), Role::NotModelled, "r");
        assert_eq!(numbers(&none), ["7.5 1/s", "", ""]);
    }

    #[test]
    fn a_miss_that_is_not_known_is_broken() {
        let miss = number(1.0, 2.0);
        assert!(is_broken(&miss, &[]));
        let known = |row: [&str; 2]| row.map(str::to_owned);
        assert!(is_broken(&miss, &[["s.t", "g"], ["s.u", "f"]].map(known)));
        assert!(!is_broken(&miss, &[known(["s.t", "f"])]));
        assert!(!is_broken(&number(1.0, 1.0), &[]));
        let statement = Row::statement("s.t", "f", "a < b", ("2 > 1".into(), false), "m");
        assert!(is_broken(&statement, &[]));
    }

    /// One that fits, one that does not, one that cannot fail, and an input.
    fn rows() -> [Row; 4] {
        let bound = Row { freedom: Freedom::None, ..number(1.0, 1.0) };
        let input = Row::number("s.t", "g", (3.0, 3.0, "s"), Role::Input, "p");
        [number(1.0, 1.0), number(1.0, 2.0), bound, input]
    }

    #[test]
    fn the_table_says_what_does_not_fit() {
        let rows = rows();
        let text = table(&rows, &mechanisms(&rows)).to_string();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert!(lines[0].contains("fits") && lines[0].contains("predicted"), "{text}");
        assert!(lines[0].contains("100 %"), "{text}");
        assert!(lines[1].contains("does not fit"), "{text}");
        assert!(lines[3].contains("input") && !lines[3].contains("fit"), "{text}");
    }

    #[test]
    fn a_row_that_the_inputs_fix_is_shown_as_a_difference() {
        let row = number(22.95, 22.85).beyond(22.47, 0.0);
        assert_eq!(numbers(&row), ["+0.48 ms", "+0.38 ms", "0.79"]);
        assert_eq!(free(&row), "2 %");
        let wrong = number(22.95, 22.37).beyond(22.47, 0.0);
        assert_eq!(numbers(&wrong), ["+0.48 ms", "-0.10 ms", "–"]);
        let close = number(22.46, 22.44).beyond(22.47, 0.05);
        assert_eq!(numbers(&close), ["-0.01 ms", "-0.03 ms", "±0.05"]);
        let json = document(&[row], &[]);
        let (row, close) = (&json["rows"][0], |value: &Value, to: f64| {
            value.as_f64().is_some_and(|value| (value - to).abs() < 1e-9)
        });
        assert_eq!((&row["kind"], &row["ours"]), (&"difference".into(), &22.85.into()));
        assert!(close(&row["compared"][0], 0.48) && close(&row["free_share"], 0.38 / 22.85));
    }

    #[test]
    fn parameters_are_counted_beside_figures() {
        let fitted = Fitted { source: "s.t", parameter: "p", on: "f" };
        let text = balance(&rows(), &[fitted]);
        for expected in ["2 of 3 figures", "not modelled: 1)", "2 could have failed: 1 of them did"]
        {
            assert!(text.contains(expected), "{text}");
        }
        assert!(text.ends_with("Fitted parameters: 1."), "{text}");
    }

    #[test]
    fn the_curves_of_2003_have_the_numbers_of_the_rows() {
        let dbench = [("busy_us", BURST_US), ("kernel_percent", DBENCH_KERNEL_PERCENT)];
        let dcachebench = [
            ("round_us", ROUND_US),
            ("share_percent", SHARE_PERCENT),
            ("barriers", BARRIERS),
            ("call_every_us", CALL_EVERY_US),
        ];
        let all = RECORDED.curves.iter().map(|curves| &curves.lines);
        for (lines, own) in all.zip([&dbench[..], &dcachebench]) {
            for (line, is_token) in lines.iter().zip([false, true]) {
                let idle = [("idle_look_every_ns", IDLE_LOOK_NS)];
                let idle = idle.iter().filter(|_| is_token);
                for (name, value) in own.iter().chain(&[("section_us", SECTION_US)]).chain(idle) {
                    assert!(
                        line.split(' ').any(|word| word == format!("{name}={value}")),
                        "{line}"
                    );
                }
            }
        }
    }

    #[test]
    fn rows_of_a_source_stand_together() {
        let row = |source, figure| Row::number(source, figure, (1.0, 1.0, "s"), Role::Input, "p");
        let rows = by_source(vec![row("b", "1"), row("a", "2"), row("b", "3"), row("a", "4")]);
        let order: Vec<&str> = rows.iter().map(|row| row.figure.as_str()).collect();
        assert_eq!(order, ["1", "3", "2", "4"]);
    }

    #[test]
    fn a_mechanism_is_told_once_and_marked() {
        let mut rows = [number(1.0, 1.0), number(2.0, 2.0), number(3.0, 3.0)];
        rows[1].mechanism = "n".to_owned();
        assert_eq!(mechanisms(&rows), ["m", "n"]);
        let text = table(&rows, &mechanisms(&rows)).to_string();
        let last = |line: &str| line.split_whitespace().last().map(str::to_owned);
        let marks: Vec<_> = text.lines().skip(2).filter_map(last).collect();
        assert_eq!(marks, ["1", "2", "1"]);
    }

    #[test]
    fn the_document_has_the_numbers_and_the_verdicts() {
        let rows = [
            number(1.0, 2.0),
            Row::statement("s.t", "g", "a < b", ("1 < 2".into(), true), "m"),
            Row::number("s.t", "h", (7.5, None, "1/s"), Role::NotModelled, "r"),
        ];
        let json = document(&rows, &[]);
        assert_eq!(
            (&json["fits"], &json["misses"], &json["not_compared"]),
            (&1.into(), &1.into(), &1.into())
        );
        assert_eq!(json["rows"][0]["ratio"], 2.0);
        assert_eq!(json["rows"][0]["verdict"], "does not fit");
        assert_eq!(json["rows"][1]["ours"], "1 < 2");
        assert!(json["rows"][2]["ours"].is_null() && json["rows"][2]["verdict"].is_null());
    }
}
