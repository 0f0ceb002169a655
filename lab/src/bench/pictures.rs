//! The pictures of `rcu bench pictures`, and their place in a folder: beside each a text with its
//! figures and where they come from. A picture that lacks a figure stays as it was.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use ::bench::statistics::Spread;
use ::bench::suites::pictures::{Picture, crates};
use ::bench::suites::rounds::{Case, Metric, Unit};
use ::bench::units;

use super::report::{half_spread, number_of};
use crate::exit::{Failure, Result, text_of};
use crate::html::{self, Markup};
use crate::output::Output;
use crate::plot::{self, Axis, Interval, Line, Scale};
use crate::provenance::Provenance;

/// What a user compiles, on the page above the folder of pictures.
const WEIGHTS: &str = "../MEASURED.md";

const PER_SECOND: Metric = Metric { name: "", unit: Unit::PerSecond };

/// One picture with its figures, as far as there are any.
pub(super) struct Drawn {
    file: &'static str,
    pub(super) picture: Markup,
    pub(super) figures: String,
    /// Who has no figure, or for what nobody has one.
    missing: Vec<&'static str>,
}

/// A figure of a picture: of one rival at one setting.
struct Figure {
    setting: &'static str,
    label: &'static str,
    ours: bool,
    metric: &'static Metric,
    spread: Option<Spread>,
}

impl Figure {
    fn name(&self) -> String {
        let parts = [self.setting, self.label].into_iter().filter(|part| !part.is_empty());
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// Draws these pictures of these cases.
pub(super) fn draw(
    pictures: &[&Picture],
    cases: &[Case],
    from: &Provenance,
    load: &str,
) -> Vec<Drawn> {
    let date = from.date.split('T').next().unwrap_or_default();
    let machine = format!("{}, {}, {date}, load {load}", from.cpu, from.host_class);
    let one = |picture: &&Picture| {
        let all = figures(picture, cases);
        let figure = |each: &Figure| {
            let Spread { median, low, high } = each.spread?;
            let text = number_of(each.metric, median);
            Some(format!("{:<28} {text:>10} ± {}\n", each.name(), half_spread(median, low, high)))
        };
        let missing = all.iter().filter(|each| each.spread.is_none()).map(|each| each.label);
        let settings = picture.settings.iter().map(|[setting, ..]| *setting);
        let unknown = settings.filter(|setting| !all.iter().any(|each| each.setting == *setting));
        Drawn {
            file: picture.file,
            picture: plot(picture, &all, &machine),
            figures: all.iter().filter_map(figure).collect(),
            missing: missing.chain(unknown).collect(),
        }
    };
    pictures.iter().map(one).collect()
}

/// Setting by setting, those who are measured.
fn figures(picture: &Picture, cases: &[Case]) -> Vec<Figure> {
    let mut all = Vec::new();
    for [setting, id, name] in &picture.settings {
        let Some(case) = cases.iter().find(|case| case.id == *id) else { continue };
        let number = case.metrics.iter().position(|metric| metric.name == *name);
        let Some((number, metric)) = number.map(|at| (at, &case.metrics[at])) else { continue };
        for [label, rival] in &picture.rivals {
            let Some(series) = case.rival(rival) else { continue };
            let (ours, spread) = (series.ours, series.spread(number));
            all.push(Figure { setting, label, ours, metric, spread });
        }
    }
    all
}

fn plot(picture: &Picture, all: &[Figure], machine: &str) -> Markup {
    let label: fn(f64) -> String = match all.first().map(|each| each.metric.unit) {
        Some(Unit::Nanoseconds) => units::nanoseconds,
        Some(Unit::PerSecond) => |value| number_of(&PER_SECOND, value),
        Some(Unit::Bytes) => |value| units::bytes(value as u64),
        _ => units::figures,
    };
    let values = all.iter().filter_map(|each| Some(each.spread?.median));
    let is_wide = picture.over.is_none() && !picture.logarithmic;
    let scale = match Scale::for_values(values) {
        Scale::Logarithmic if !is_wide => Scale::Logarithmic,
        _ => Scale::Bars,
    };
    let axis = Axis::new(picture.axis, scale, label);
    let title = format!("{}. {machine}; medians of interleaved rounds", picture.title);
    let Some(over) = picture.over else {
        let row = |each: &Figure| {
            let Spread { median, low, high } = each.spread?;
            let text = number_of(each.metric, median);
            Some(Interval::of(each.name(), each.ours, [median, low, high], text))
        };
        let rows: Vec<_> = all.iter().filter_map(row).collect();
        return plot::intervals(&format!("{title}, whiskers: quartiles"), &axis, &rows);
    };
    let settings: Vec<_> = picture.settings.iter().map(|[name, ..]| (*name).to_owned()).collect();
    let line = |[label, _]: &[&'static str; 2]| {
        let of = |setting: &String| {
            all.iter().find(|each| each.label == *label && each.setting == setting)
        };
        let ours = settings.iter().find_map(of)?.ours;
        let value = |setting| Some(of(setting)?.spread?.median);
        let values = settings.iter().map(value).collect();
        Some(Line { name: (*label).to_owned(), values, ours })
    };
    let lines: Vec<Line> = picture.rivals.iter().filter_map(line).collect();
    plot::curves(&title, over, &axis, &settings, &lines)
}

/// What a user compiles: the table of `.ci/weight` on the page of figures.
fn weights(page: &str) -> Vec<Interval> {
    let table = page.lines().skip_while(|line| !line.starts_with("| dependency |")).skip(2);
    let row = |line: &str| {
        let mut cells = line.split('|').map(|cell| cell.trim().trim_matches('`')).skip(1);
        let (name, seconds) = (cells.next()?, cells.nth(1)?);
        let is_ours = name != "rivals";
        Some(Interval::of(name, is_ours, [seconds.parse().ok()?; 3], format!("{seconds} s")))
    };
    table.map_while(row).collect()
}

/// Writes the pictures that are whole into the folder, and that of what a user compiles.
pub(super) fn put_into(folder: &Path, pictures: &[Drawn], output: &mut Output) -> Result<()> {
    let write = |name: String, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).map_err(|error| Failure::file("write", &path, error))
    };
    let origin = origin(folder, &output.provenance);
    for Drawn { file, picture, figures, missing } in pictures {
        if !missing.is_empty() {
            let who = missing.join(", ");
            output.note(format_args!("{file}.svg stays as it was: no figure of {who}"));
            continue;
        }
        let svg = html::picture(picture).map(|(_, svg)| svg).unwrap_or_default();
        write(format!("{file}.svg"), &svg)?;
        write(format!("{file}.txt"), &format!("{figures}\n{origin}"))?;
    }
    let rows = weights(&text_of(&folder.join(WEIGHTS)).unwrap_or_default());
    let title = "What a user compiles; CPU time of a release build from nothing; rivals: \
                 crossbeam-epoch, arc-swap and papaya; figures of docs/MEASURED.md";
    let axis = Axis::new("seconds of CPU", Scale::Bars, units::figures);
    let part = plot::intervals(title, &axis, &rows);
    html::picture(&part).map_or(Ok(()), |(_, svg)| write("build.svg".to_owned(), &svg))
}

/// Where the figures come from: with the versions of the rivals, as the lock file has them.
fn origin(folder: &Path, from: &Provenance) -> String {
    let mut text = String::new();
    for (name, value) in from.rows() {
        let _ = writeln!(text, "{name}: {value}");
    }
    let folder = folder.canonicalize().unwrap_or_default();
    let lock =
        folder.ancestors().find_map(|folder| fs::read_to_string(folder.join("Cargo.lock")).ok());
    for package in lock.unwrap_or_default().split("[[package]]") {
        let value = |key: &str| package.split_once(&format!("{key} = \""))?.1.split('"').next();
        let (Some(name), Some(version)) = (value("name"), value("version")) else { continue };
        if crates().any(|known| known == name) {
            let _ = writeln!(text, "{name}: {version}");
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use ::bench::suites::pictures::chosen;

    use super::*;

    const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];

    fn drawn(values: Vec<f64>) -> Drawn {
        let mut case = Case::new("read/2-threads", "x", METRICS, [("seize", false)]);
        case.rivals[0].values = vec![values];
        let read = chosen(&["read".to_owned()]).unwrap();
        draw(&read, &[case], &Provenance::of_this_run(false), "0.10").swap_remove(0)
    }

    #[test]
    fn a_picture_has_its_figures_and_where_they_come_from() {
        let read = drawn(vec![5.0, 6.0, 7.0]);
        assert_eq!((read.file, read.missing.len()), ("read", 0));
        assert!(read.figures.starts_with("seize ") && read.figures.contains("6.00 ns ± 8 %"));
        let text = read.picture.into_string();
        assert!(text.contains("seize: 6.00 ns (5.50 ns to 6.50 ns)"), "{text}");
        assert!(text.contains(">Reading, two threads</text>") && text.contains("load 0.10"));
    }

    #[test]
    fn what_a_user_compiles_is_read_from_its_table() {
        let page = "x\n| dependency | release, s | CPU, s |\n|---|---|---|\n| `quiescence` | 7.1 \
                    | 10.0 |\n| rivals | 2.2 | 3.9 |\n\n| other | 1 | 2 |\n";
        let rows = weights(page);
        let shown = |row: &Interval| (row.name.clone(), row.value, row.class);
        let expected =
            [("quiescence".to_owned(), 10.0, "ours"), ("rivals".to_owned(), 3.9, "other")];
        assert_eq!(rows.iter().map(shown).collect::<Vec<_>>(), expected);
        let measured = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/MEASURED.md");
        assert_eq!(weights(&fs::read_to_string(measured).unwrap()).len(), 3);
    }

    #[test]
    fn a_picture_that_lacks_a_figure_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("read.svg");
        fs::write(&path, "old").unwrap();
        let interrupt = crate::interrupt::Interrupt::install().unwrap();
        let mut output = Output::new(&Default::default(), interrupt).unwrap();
        put_into(folder.path(), &[drawn(Vec::new())], &mut output).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        put_into(folder.path(), &[drawn(vec![5.0, 6.0])], &mut output).unwrap();
        assert!(fs::read_to_string(&path).unwrap().starts_with("<svg"));
        let figures = fs::read_to_string(path.with_extension("txt")).unwrap();
        assert!(figures.contains("\ncommand: rcu") && figures.contains("\nversion: "), "{figures}");
    }
}
