//! All that a run of `rcu advise` found, and how a terminal shows it.
//!
//! The JSON document is made from the same [`Report`], and the page from what is said here, so that
//! the three agree.

use bench::costs::Costs;
use bench::slices::RunVerdict;
use bench::statistics::Spread;
use bench::units;
use serde_json::{Value, json};

use crate::costs::table_out;
use crate::distinct::no_figure;
use crate::html::{self, Markup};
use crate::keys::Census;
use crate::output::{self, Output, SchemaId, merged, run_out};
use crate::plot::{self, Axis, Interval, Line, Scale};
use crate::record::Block;

use super::TEXTS;
use super::curves::Curves;
use super::leaves::LeafFigure;
use super::rank::{By, Place, Ranking};
use super::run::Run;
use super::simplicity::TABLE;
use super::sweep::{Point, Sweep};
use super::verdict::Advice;
use super::{remarks, tree, verdict};

pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/advise", 2);

/// All that was found.
pub(super) struct Report<'a> {
    /// What was to be found.
    pub(super) asked: &'a Run<'a>,
    pub(super) interrupted: bool,
    pub(super) costs: Option<Costs>,
    /// The ranking of each table, of the workload as given last; none when nothing was measured.
    pub(super) tables: Vec<Ranking>,
    /// How good the run was that they are from.
    pub(super) run: RunVerdict,
    /// What each leaf of the decision tree costs, if the workload has one.
    pub(super) leaves: Vec<LeafFigure>,
    pub(super) sweeps: Vec<Sweep>,
    /// In place of sweeps, if threads are a range.
    pub(super) curves: Vec<Curves>,
    /// Time was up before all points of the sweeps were run.
    pub(super) cut_short: bool,
    /// Reads that saw a wrong value, anywhere.
    pub(super) checksum_errors: u64,
}

impl Report<'_> {
    /// The ranking of the workload as given.
    pub(super) fn places(&self) -> &[Place] {
        self.tables.last().map_or(&[], |table| &table.places)
    }

    /// The tables that no design can be recommended for.
    pub(super) fn open(&self) -> Vec<&Ranking> {
        verdict::open(&self.tables, &verdict::advice(&self.tables))
    }

    /// Why no design is recommended, for one of the tables at least.
    pub(super) fn too_noisy(&self) -> Option<String> {
        let RunVerdict { counted, drawn, .. } = self.run;
        let percent = self.run.counted_percent().floor();
        let open = match self.open().first()?.may_be_best().len() {
            0 => "nothing was measured".to_owned(),
            open => format!("each of {open} designs may be the best"),
        };
        Some(format!("{open}; {counted} of {drawn} slices count, {percent} %"))
    }

    /// What to take; nothing where nothing can be recommended for its speed.
    pub(super) fn advice(&self) -> Vec<Advice<'_>> {
        match self.checksum_errors == 0 && !self.asked.workload.asks_more_than_speed() {
            true => verdict::advice(&self.tables),
            false => Vec::new(),
        }
    }

    /// What to do, a paragraph for each thing to know; why there is nothing to say otherwise.
    pub(super) fn recommendation(&self) -> Vec<String> {
        if self.checksum_errors > 0 {
            return vec![format!(
                "Readers saw {} wrong values: a design is broken here, and nothing can be \
                 recommended. Please report this.",
                units::count(self.checksum_errors)
            )];
        }
        let mut paragraphs = Vec::new();
        if self.interrupted {
            let slices = self.run.counted;
            paragraphs.push(format!("Interrupted: the ranking is from {slices} slices."));
        }
        paragraphs.extend(verdict::paragraphs(
            &self.advice(),
            &self.tables,
            &self.sweeps,
            self.asked.workload.value_bytes,
        ));
        paragraphs.extend(self.of_what_is_open());
        if let Some(path) = tree::path(&self.asked.workload) {
            paragraphs.extend(path.paragraphs(self.places(), &self.leaves));
        }
        paragraphs.extend(remarks::large_values(&self.asked.workload));
        if self.cut_short {
            paragraphs.push(
                "Time ran out before every setting was tried; --minutes N tries all.".to_owned(),
            );
        }
        paragraphs
    }

    /// Why nothing is recommended, for one table or both, what to do, and what is known.
    fn of_what_is_open(&self) -> Vec<String> {
        let Some(why) = self.too_noisy() else { return Vec::new() };
        let again = &TEXTS[if self.run.is_raised { "again" } else { "again-raised" }];
        let mut known = vec![match self.interrupted {
            true => format!("Nothing is recommended: {why}."),
            false => format!("Too noisy to recommend one design: {why}. {again}"),
        }];
        let of_table = |table: &Ranking| {
            let text = verdict::what_is_open(table)?;
            Some(verdict::of_table(&self.tables, table.keys, text))
        };
        known.extend(self.open().into_iter().filter_map(of_table));
        let cost = |id: &str| {
            let rows = &self.costs.as_ref()?.rows;
            let ns = rows.iter().find(|row| row.id == id)?.ns?.median;
            Some(units::nanoseconds(ns))
        };
        if let (Some(lock), Some(shared), Some(rcu)) =
            (cost("cpu_local_lock"), cost("read_lock"), cost("rcu_read"))
        {
            known.push(format!(
                "Known nevertheless: with a single thread a lock takes {lock}, a read lock \
                 {shared}, and an RCU read {rcu}."
            ));
        }
        known
    }

    /// Prints what the ranking is about; before anything is measured.
    pub(super) fn print_input(&self, output: &mut Output) {
        output.heading(format!("Workload: {}", self.asked.workload.name));
        output.entries([
            ("what", self.asked.workload.to_string()),
            ("keys", describe_keys(&self.asked.keys.census)),
            ("seed", self.asked.args.seed.to_string()),
        ]);
        for note in self.asked.keys.census.notes() {
            output.note(format!("{}: {note}", self.asked.keys.census.source));
        }
    }

    /// Prints everything after the costs.
    pub(super) fn print(&self, output: &mut Output) {
        output.paragraph(self.run.to_string());
        for table in &self.tables {
            output.heading(self.title(table));
            if !table.places.is_empty() {
                output.paragraph(table.by.sentence());
                output.table(ranking_table(&table.places));
                output.picture(|| throughput_bars(&table.places));
            }
            if table.places.iter().any(|place| place.update_ns.is_some()) {
                output.picture(|| latencies(&table.places));
            }
            let unranked = table.unranked.iter().map(|one| (one.name, one.missing.clone()));
            match no_figure(unranked, "designs") {
                Some(text) => output.paragraph(text),
                None if table.places.is_empty() => output.paragraph("Nothing was measured here."),
                None => {}
            }
        }
        if !self.places().is_empty() {
            output.paragraph(&TEXTS["columns"]);
            output.paragraph(&TEXTS["terms"]);
            let remarks = remarks::disclosures(&self.asked.workload, self.places());
            remarks.iter().for_each(|remark| output.paragraph(remark));
            output.heading("Why");
            let designs = self.places().iter().map(|place| place.design);
            output.entries(designs.map(|one| (one.name, one.about.reader_cost)));
            output.picture(|| limits(self.places()));
        }
        let mut known = self.sweeps.iter().filter(|sweep| !sweep.designs().is_empty()).peekable();
        if known.peek().is_some() {
            output.heading("Where the answer flips");
            for sweep in known {
                output.table(sweep_table(sweep));
                if sweep.points.len() > 1 {
                    output.picture(|| sweep_lines(sweep));
                }
                output.line("");
            }
            let keys = match &self.tables[..] {
                [first, _, ..] => format!(", with {} keys", units::count(first.keys)),
                _ => String::new(),
            };
            output.paragraph(format!("Millions of operations per second{keys}; {STAR_LEGEND}"));
        }
        for curves in self.curves.iter().filter(|curves| !curves.sweep.points.is_empty()) {
            output.heading(curves.title());
            output.table(sweep_table(&curves.sweep));
            if !curves.sweep.designs().is_empty() {
                output.picture(|| sweep_lines(&curves.sweep));
            }
        }
        if !self.leaves.is_empty() {
            output.heading("The leaves of the decision tree");
            output.entries(self.leaves.iter().map(|one| (one.leaf, one.to_string())));
            output.paragraph(&TEXTS["leaves"]);
        }
        let is_alarm = self.checksum_errors > 0 || self.too_noisy().is_some();
        let (heading, paragraphs) = ("Recommendation", self.recommendation());
        output.say(Block::Conclusion { heading, is_alarm, paragraphs });
        for choice in self.choices() {
            let (head, program) = remarks::code(choice);
            output.heading("Code to paste");
            output.paragraph(head);
            output.say(Block::Code(program.to_owned()));
        }
    }

    /// The report as JSON. Its schema is `lab/schema/advise.schema.json`: if you change a field
    /// here, describe it there, and raise the version if a reader of the old one would go wrong.
    pub(super) fn document(&self) -> Value {
        let advice = self.advice();
        let of = |table: &Ranking| advice.iter().find(|one| one.keys.contains(&table.keys));
        let table = self.tables.last();
        let last = table.and_then(of);
        let choice = last.map(|one| one.choice.design);
        let small = self.tables.split_last().and_then(|(_, others)| others.first());
        let small = small.map(|table| {
            let name = of(table).map(|one| one.choice.design.name);
            merged([json!(table), json!({ "recommended": name })])
        });
        let equal = last.map_or(&[][..], |one| &one.set);
        let equal: Vec<&str> = equal.iter().map(|place| place.design.name).collect();
        json!({
            "rcu": env!("CARGO_PKG_VERSION"),
            "seed": self.asked.args.seed,
            "cut_short": self.cut_short,
            "run": run_out(&self.run),
            "too_noisy": self.too_noisy(),
            "checksum_errors": self.checksum_errors,
            "machine": self.asked.machine,
            "costs": self.costs.as_ref().map(table_out),
            "keys": self.asked.keys.census,
            "workload": self.asked.workload,
            "ranked_by": table.map_or(By::Wall, |table| table.by),
            "designs": self.places(),
            "unranked": table.map_or(&[][..], |table| &table.unranked),
            "small": small,
            "equal": equal,
            "lost_percent_at_most": last.map(|one| one.lost_percent_at_most),
            "sweeps": self.sweeps,
            "curves": self.curves,
            "flips": self.sweeps.iter().flat_map(Sweep::flips).collect::<Vec<_>>(),
            "simplicity": *TABLE,
            "recommended": choice.map(|design| design.name),
            "program": choice.map(|design| design.program),
            "recommendation": self.recommendation(),
            "decision": tree::path(&self.asked.workload),
            "leaves": self.leaves,
            "disclosures": remarks::disclosures(&self.asked.workload, self.places()),
        })
    }

    /// The designs to take, each once.
    pub(super) fn choices(&self) -> Vec<&Place> {
        let mut choices: Vec<&Place> = self.advice().iter().map(|one| one.choice).collect();
        choices.dedup_by_key(|place| place.design.name);
        choices
    }

    /// What a ranking is of.
    pub(super) fn title(&self, table: &Ranking) -> String {
        match (&self.tables[..], units::count(table.keys)) {
            ([_], _) => "Ranking".to_owned(),
            ([small, ..], keys) if small.keys == table.keys => {
                format!("Ranking: {keys} keys, which fit the caches")
            }
            (_, keys) => format!("Ranking: {keys} keys"),
        }
    }
}

/// What the star of a sweep means.
const STAR_LEGEND: &str = "* is equal to the best there, within 15 %.";

/// What throughput is in.
const THROUGHPUT: &str = "million operations per second";

/// How many keys of what.
fn describe_keys(keys: &Census) -> String {
    let limit = if keys.truncated { "; there are more, see --max-keys" } else { "" };
    format!(
        "{}: {} ({}, {} on average{limit})",
        keys.source,
        units::count(keys.count),
        units::bytes(keys.bytes),
        units::bytes(keys.bytes / keys.count.max(1))
    )
}

/// The cells of one line of the ranking, which may be the fastest of its rank's.
fn ranking_cells(place: &Place, is_fastest: bool) -> [String; 8] {
    let behind = match place.best_is_faster.median {
        1.0 => "–".to_owned(),
        // Equal to the best, and in most slices faster.
        times if times < 1.0 => "≈".to_owned(),
        times => format!("{}x", units::figures(times)),
    };
    let mark = if is_fastest { "↑" } else { " " };
    let Spread { median, low, high } = place.throughput;
    [
        place.rank.to_string(),
        place.design.name.to_owned(),
        format!("{}{mark}", units::figures(median / 1e6)),
        // The distance between the quartiles.
        match 100.0 * (high - low) / median {
            percent if percent.is_finite() => format!("{percent:.0} %"),
            _ => "–".to_owned(),
        },
        behind,
        place.update_ns.map_or_else(|| "–".to_owned(), |ns| units::nanoseconds(ns.p99_9 as f64)),
        units::count(place.unreclaimed_peak),
        units::nanoseconds(place.cpu_ns.median),
    ]
}

fn ranking_table(places: &[Place]) -> comfy_table::Table {
    let header = ["#", "design", "Mop/s", "±", "behind", "update", "waiting", "CPU"];
    let row = |place: &Place| {
        let rank = || places.iter().filter(|one| one.rank == place.rank);
        let speed = |one: &Place| one.throughput.median;
        let is_fastest = rank().count() > 1 && rank().all(|one| speed(one) <= speed(place));
        let cells = ranking_cells(place, is_fastest).map(comfy_table::Cell::new);
        cells.map(|cell| match place.design.ours {
            true => cell.add_attribute(comfy_table::Attribute::Bold),
            false => cell,
        })
    };
    output::table(&header, [0, 2, 3, 4, 5, 6, 7], places.iter().map(row))
}

/// The throughput of each design, with its quartiles.
fn throughput_bars(places: &[Place]) -> Markup {
    let bar = |place: &Place| {
        let figures = <[f64; 3]>::from(place.throughput).map(|each| each / 1e6);
        let text = units::figures(figures[0]);
        Interval::of(place.design.name, place.design.ours, figures, text)
    };
    let title = "Throughput of each design; whiskers: the quartiles.";
    let axis = Axis::new(THROUGHPUT, Scale::Bars, units::figures);
    let mut sorted: Vec<&Place> = places.iter().collect();
    sorted.sort_by(|a, b| b.throughput.median.total_cmp(&a.throughput.median));
    plot::intervals(title, axis, sorted.into_iter().map(bar).collect())
}

/// How long the updates of each design take.
fn latencies(places: &[Place]) -> Markup {
    let row = |place: &Place| {
        let [median, most, slowest] =
            place.update_ns.map(|ns| [ns.p50, ns.p99, ns.p99_9].map(|ns| ns as f64))?;
        let (design, text) = (place.design, units::nanoseconds(slowest));
        Some(Interval::of(design.name, design.ours, [most, median, slowest], text))
    };
    let title = "Latency of updates: 99 %, whiskers at the median and at 99.9 %, which stands at \
                 the right; logarithmic.";
    let axis = Axis::new("latency of an update", Scale::Logarithmic, units::nanoseconds);
    plot::intervals(title, axis, places.iter().filter_map(row).collect())
}

/// What each design is not for.
fn limits(places: &[Place]) -> Markup {
    let limit = |one: &Place| (one.design.name, one.design.about.limits);
    let limits: Vec<_> = places.iter().map(limit).collect();
    html::titled("What each is not for", |part| html::definitions(part, &limits))
}

/// The settings of a sweep, as heads of columns.
fn settings(sweep: &Sweep) -> Vec<String> {
    sweep.points.iter().map(|point| sweep.over.column(point.value)).collect()
}

/// A table of the sweep; a star marks those that are equal to the best. At the end of a line stands
/// the same as a curve.
fn sweep_table(sweep: &Sweep) -> comfy_table::Table {
    const STEPS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    let settings = settings(sweep);
    let header = [&[sweep.over.title().to_owned()], &settings[..], &[String::new()]].concat();
    let places = sweep.points.iter().flat_map(|point| &point.places);
    let most = places.map(|place| place.throughput.median).fold(0.0, f64::max);
    let step = |place: &Place| {
        let step = STEPS.len() as f64 * place.throughput.median / most;
        STEPS[(step.ceil() as usize).clamp(1, STEPS.len()) - 1]
    };
    let row = |design: &'static str| {
        let cell = |place: &Place| {
            let star = if place.standing.is_in_set() { "*" } else { " " };
            format!("{}{star}", units::figures(place.throughput.median / 1e6))
        };
        let cells =
            sweep.points.iter().map(|point| point.place(design).map_or("–".to_owned(), cell));
        let curve = sweep.points.iter().map(|point| point.place(design).map_or(' ', step));
        let cells = std::iter::once(design.to_owned()).chain(cells);
        cells.chain([curve.collect()]).collect::<Vec<_>>()
    };
    output::table(&header, 1.., sweep.designs().into_iter().map(row))
}

/// The sweep as lines.
fn sweep_lines(sweep: &Sweep) -> Markup {
    let line = |name: &'static str| {
        let of = |point: &Point| point.place(name).map(|place| place.throughput.median / 1e6);
        let ours = sweep.points.iter().find_map(|point| point.place(name));
        Line {
            name: name.to_owned(),
            values: sweep.points.iter().map(of).collect(),
            ours: ours.is_some_and(|place| place.design.ours),
        }
    };
    let mut lines: Vec<Line> = sweep.designs().into_iter().map(line).collect();
    // The same order, and so the same colours, in every plot of the page.
    lines.sort_by(|a, b| b.ours.cmp(&a.ours).then_with(|| a.name.cmp(&b.name)));
    let axis = Axis::new(THROUGHPUT, Scale::Bars, units::figures);
    plot::lines(sweep.over.title(), &axis, &settings(sweep), &lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rank::tests::place;

    #[test]
    fn equals_of_a_rank_are_not_behind_and_the_fastest_is_marked() {
        let mut places = [place("std-mutex", 1, 9e6), place("papaya", 1, 9.3e6)];
        places[1].best_is_faster.median = 0.97;
        let text = ranking_table(&places).to_string();
        assert!(!text.contains("0.97x") && text.contains('≈'), "{text}");
        assert!(text.contains("9.30↑") && text.matches('↑').count() == 1, "{text}");
        let bars = format!("{:?}", throughput_bars(&places));
        assert!(bars.find("papaya") < bars.find("std-mutex"), "the longest first: {bars}");
        let alone = ranking_table(&[place("std-mutex", 1, 9e6), place("papaya", 2, 8e6)]);
        assert!(!alone.to_string().contains('↑'), "one of a rank needs no mark: {alone}");
    }
}
