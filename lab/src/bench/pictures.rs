//! The pictures of `rcu bench pictures`, and their place in a folder: beside each a text with its
//! figures and where they come from. A picture that lacks a figure stays as it was.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use ::bench::statistics::Spread;
use ::bench::suites::pictures::Picture;
use ::bench::suites::rounds::{Case, Metric, Unit};
use ::bench::units;

use super::report::{half_spread, number_of};
use crate::exit::{Result, text_of};
use crate::html::{self, Markup};
use crate::output::{self, Output};
use crate::plot::{self, Axis, Interval, Line, Scale};
use crate::provenance::Provenance;

/// What a user compiles, on the page above the folder of pictures.
const WEIGHTS: &str = "../MEASURED.md";

/// One picture with its figures, as far as there are any.
pub(super) struct Drawn {
    pub(super) of: &'static Picture,
    pub(super) picture: Markup,
    pub(super) figures: String,
    /// Who has no figure, or the case of which nobody has one.
    missing: BTreeSet<&'static str>,
}

/// A figure of a picture: of one rival at one setting.
struct Figure {
    setting: &'static str,
    label: &'static str,
    ours: bool,
    metric: &'static Metric,
    spread: Spread,
    /// The number of values whose median it is.
    values: usize,
}

impl Figure {
    fn row(&self) -> Interval {
        let parts = [self.setting, self.label].into_iter().filter(|part| !part.is_empty());
        let name = parts.collect::<Vec<_>>().join(", ");
        Interval::of(name, self.ours, self.spread, number_of(self.metric, self.spread.median))
    }
}

/// Draws these pictures of these cases; what `conditions` says of the run stands in each.
pub(super) fn draw(
    pictures: &[&'static Picture],
    cases: &[Case],
    from: &Provenance,
    conditions: &str,
) -> Vec<Drawn> {
    let date = from.date.split('T').next().unwrap_or_default();
    let run = format!("{}, {}, {date}, {conditions}", from.cpu, from.host_class);
    let line = |(row, figure): (&Interval, &Figure)| {
        format!("{:<28} {:>10} ± {}\n", row.name, row.text, half_spread(&figure.spread))
    };
    let one = |of: &&'static Picture| {
        let (all, missing) = figures(of, cases);
        let rows: Vec<_> = all.iter().map(Figure::row).collect();
        let figures = rows.iter().zip(&all).map(line).collect();
        Drawn { of, picture: plot(of, &all, &rows, &run), figures, missing }
    };
    pictures.iter().map(one).collect()
}

/// The figures setting by setting, the least first, and what is missing. A case that was cut short
/// has none.
fn figures(picture: &Picture, cases: &[Case]) -> (Vec<Figure>, BTreeSet<&'static str>) {
    let (mut all, mut missing) = (Vec::new(), BTreeSet::new());
    for [setting, id, name] in &picture.settings {
        let case = cases.iter().find(|case| case.id == *id && !case.cut);
        let figure = |label, rival| {
            let number = case?.metrics.iter().position(|metric| metric.name == *name)?;
            let (metric, series) = (&case?.metrics[number], case?.rival(rival)?);
            let (spread, values) = (series.spread(number)?, series.measured(number).len());
            Some(Figure { setting, label, ours: series.ours, metric, spread, values })
        };
        let (mut here, mut without) = (Vec::new(), Vec::new());
        for [label, rival] in &picture.rivals {
            match figure(*label, rival) {
                Some(figure) => here.push(figure),
                None => without.push(*label),
            }
        }
        missing.extend(if here.is_empty() { vec![*id] } else { without });
        here.sort_by(|a, b| a.spread.median.total_cmp(&b.spread.median));
        all.extend(here);
    }
    (all, missing)
}

/// Rows, or curves over settings; of these, too, a terminal shows rows.
fn plot(picture: &Picture, all: &[Figure], rows: &[Interval], run: &str) -> Markup {
    let label: fn(f64) -> String = match all.first().map(|each| each.metric.unit) {
        Some(Unit::Nanoseconds) => units::nanoseconds,
        Some(Unit::PerSecond) => units::per_second,
        Some(Unit::Bytes) => |value| units::bytes(value as u64),
        _ => units::figures,
    };
    // One that takes no memory at all does not decide how the others are told apart.
    let values = all.iter().map(|each| each.spread.median).filter(|value| *value > 0.0);
    let axis = Axis::new(picture.axis, Scale::for_values(values), label);
    let least = all.iter().map(|each| each.values).min().unwrap_or(0);
    let title = format!("{}. {run}; medians of at least {least} values", picture.title);
    let title_of_rows = format!("{title}, whiskers: quartiles");
    let intervals = plot::intervals(&title_of_rows, axis.clone(), rows.to_vec());
    let Some(over) = picture.over else { return intervals };
    let settings: Vec<_> = picture.settings.iter().map(|[name, ..]| (*name).to_owned()).collect();
    let line = |[label, _]: &[&'static str; 2]| {
        let of = |setting: &String| {
            all.iter().find(|each| each.label == *label && each.setting == setting)
        };
        let ours = settings.iter().find_map(of)?.ours;
        let values = settings.iter().map(|setting| Some(of(setting)?.spread.median)).collect();
        Some(Line { name: (*label).to_owned(), values, ours })
    };
    let lines: Vec<Line> = picture.rivals.iter().filter_map(line).collect();
    let mut part = plot::curves(&title, over, &axis, &settings, &lines);
    part.chart = intervals.chart;
    part
}

/// What a user compiles: the table of `.ci/weight` on the page of figures, if all of it is there.
fn weights(page: &str) -> Option<Vec<Interval>> {
    let table = page.lines().skip_while(|line| !line.starts_with("| dependency |")).skip(2);
    let row = |line: &str| {
        let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`')).skip(1);
        let (name, seconds) = (cells.next()?, cells.nth(1)?);
        let is_ours = name != "rivals";
        Some(Interval::of(name, is_ours, [seconds.parse().ok()?; 3], format!("{seconds} s")))
    };
    let rows: Option<Vec<_>> = table.take_while(|line| line.starts_with('|')).map(row).collect();
    rows.filter(|rows| !rows.is_empty())
}

/// Writes into the folder the pictures that are complete, of these.
pub(super) fn put_into(folder: &Path, pictures: &[Drawn], output: &mut Output) -> Result<()> {
    let write = |of: &Picture, extension: &str, text: &str| {
        output::replace(&folder.join(of.file).with_extension(extension), text)
    };
    let svg = |part: &Markup| html::picture(part).map(|(_, svg)| svg).unwrap_or_default();
    let mut origin = String::new();
    for (name, value) in output.provenance.rows() {
        let _ = writeln!(origin, "{name}: {value}");
    }
    for Drawn { of, picture, figures, missing } in pictures {
        if of.settings.is_empty() {
            let page = folder.join(WEIGHTS);
            let Some(rows) = text_of(&page).ok().and_then(|page| weights(&page)) else {
                let file = format_args!("{}.svg stays as it was", of.file);
                output.note(format_args!("{file}: no table to draw in {}", page.display()));
                continue;
            };
            let axis = Axis::new(of.axis, Scale::Bars, units::figures);
            write(of, "svg", &svg(&plot::intervals(of.title, axis, rows)))?;
        } else if missing.is_empty() {
            write(of, "svg", &svg(picture))?;
            let versions = "versions of the others: as in Cargo.lock of this commit";
            write(of, "txt", &format!("{figures}\n{origin}{versions}\n"))?;
        } else {
            let who = missing.iter().copied().collect::<Vec<_>>().join(", ");
            output.note(format_args!("{}.svg stays as it was: no figure of {who}", of.file));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use ::bench::suites::pictures::chosen;

    use super::*;

    const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];

    /// The picture `read` of its rivals without the last ones; each is faster than the one before.
    fn drawn(without: usize, cut: bool) -> Drawn {
        let read = chosen(&["read".to_owned()])[0];
        let names = read.rivals.iter().map(|[_, name]| (*name, false));
        let names = names.take(read.rivals.len() - without);
        let mut case = Case::new("read/2-threads", "x", METRICS, names);
        case.cut = cut;
        for (number, series) in (1..).zip(&mut case.rivals) {
            let nanoseconds = 1_000.0 / f64::from(number * number);
            series.values = vec![[0.8, 1.0, 1.2].map(|part| part * nanoseconds).to_vec()];
        }
        let from = Provenance::of_this_run(false);
        draw(&[read], &[case], &from, "load 0.10, --quick").swap_remove(0)
    }

    #[test]
    fn a_picture_has_its_figures_in_order_and_where_they_come_from() {
        let read = drawn(0, false);
        assert_eq!((read.of.file, read.missing.len()), ("read", 0));
        let expected = "parking_lot RwLock              8.26 ns ± 10 %\nstd RwLock";
        assert!(read.figures.starts_with(expected), "{}", read.figures);
        assert_eq!(read.picture.chart.as_ref().unwrap().rows[0].name, "parking_lot RwLock");
        let text = read.picture.into_string();
        assert!(text.contains("seize: 40.0 ns (36.0 ns to 44.0 ns)"), "{text}");
        assert!(text.contains("load 0.10, --quick; medians of at least 3 values"), "{text}");
        assert!(text.contains(">1.00 µs</text>") && !text.contains("<rect class=\"o"), "{text}");
    }

    /// One rival with no bytes made the axis linear up to the 1 GiB of another one.
    #[test]
    fn a_curve_without_memory_leaves_the_axis_of_the_others_alone() {
        const BYTES: &[Metric] = &[Metric { name: "memory at 1/4", unit: Unit::Bytes }];
        let stall = chosen(&["stall".to_owned()])[0];
        let names = stall.rivals.iter().map(|[_, name]| (*name, false));
        let mut case = Case::new("stall/1-reader", "x", BYTES, names);
        for (bytes, series) in [0.0, 1e3, 1e6, 1e9].into_iter().zip(&mut case.rivals) {
            series.values = vec![vec![bytes]];
        }
        let from = Provenance::of_this_run(false);
        let drawn = draw(&[stall], &[case], &from, "").swap_remove(0);
        let missing = ["haphazard", "stall/1-reader"];
        assert_eq!(drawn.missing, missing.into(), "each once");
        let chart = drawn.picture.chart.unwrap();
        assert_eq!((chart.axis.scale, chart.rows.len()), (Scale::Logarithmic, 4), "{chart:?}");
    }

    #[test]
    fn what_a_user_compiles_is_read_from_its_table() {
        let page = "x\n| dependency | release, s | CPU, s |\n|---|---|---|\n| `quiescence` | 7.1 \
                    | 10.0 |\n| rivals | 2.2 | 3.9 |\n\n| other | 1 | 2 |\n";
        let shown = |row: &Interval| (row.name.clone(), row.value, row.class);
        let expected =
            [("quiescence".to_owned(), 10.0, "ours"), ("rivals".to_owned(), 3.9, "other")];
        assert_eq!(weights(page).unwrap().iter().map(shown).collect::<Vec<_>>(), expected);
        assert!(weights(&page.replace("3.9", "?")).is_none(), "a shorter table is none");
        assert!(weights("x").is_none());
        let measured = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/MEASURED.md");
        assert_eq!(weights(&fs::read_to_string(measured).unwrap()).unwrap().len(), 3);
    }

    #[test]
    fn a_picture_that_lacks_a_figure_is_not_replaced() {
        let above = tempfile::tempdir().unwrap();
        let folder = above.path().join("pictures");
        fs::create_dir(&folder).unwrap();
        let path = folder.join("read.svg");
        fs::write(&path, "old").unwrap();
        let mut output = Output::new(&Default::default()).unwrap();
        for (without, cut) in [(1, false), (0, true)] {
            put_into(&folder, &[drawn(without, cut)], &mut output).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), "old", "{without}, {cut}");
        }
        put_into(&folder, &[drawn(0, false)], &mut output).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"));
        let figures = fs::read_to_string(path.with_extension("txt")).unwrap();
        assert!(figures.contains("\ncommand: rcu") && figures.contains("\nversion: "), "{figures}");

        let build = draw(&chosen(&["build".to_owned()]), &[], &output.provenance, "");
        put_into(&folder, &build, &mut output).unwrap();
        assert!(!folder.join("build.svg").exists(), "there is no page");
        let page = "| dependency | release, s | CPU, s |\n|---|---|---|\n| a | 1 | 2 |\n";
        fs::write(above.path().join("MEASURED.md"), page).unwrap();
        put_into(&folder, &build, &mut output).unwrap();
        assert!(fs::read_to_string(folder.join("build.svg")).unwrap().contains("a: 2 s</title>"));
        let mut files: Vec<_> = fs::read_dir(&folder).unwrap().map(|e| e.unwrap().path()).collect();
        files.sort();
        let expected = ["build.svg", "read.svg", "read.txt"].map(|name| folder.join(name));
        assert_eq!(files, expected);
    }
}
