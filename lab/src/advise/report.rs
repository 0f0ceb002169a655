//! All that a run of `rcu advise` found, and how a terminal shows it.
//!
//! The JSON document and the page are made from the same [`Report`], so that the three agree.

use bench::costs::Costs;
use bench::units;

use crate::exit::Failure;
use crate::keys::Census;
use crate::machine::Machine;
use crate::output::{self, Output};
use crate::workload::Workload;

use super::rank::{Place, spread_percent};
use super::sweep::{Flip, Sweep};
use super::{remarks, tree, verdict};

/// All that was found.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) seed: u64,
    pub(super) interrupted: bool,
    pub(super) machine: Machine,
    pub(super) costs: Option<Costs>,
    pub(super) keys: Census,
    pub(super) workload: Workload,
    /// The ranking; empty when nothing was measured.
    pub(super) places: Vec<Place>,
    pub(super) noise: Noise,
    pub(super) sweeps: Vec<Sweep>,
    /// Time was up before all points of the sweeps were run.
    pub(super) cut_short: bool,
    /// Reads in the sweeps that saw a wrong value; those of the ranking are with their designs.
    pub(super) checksum_errors_in_sweeps: u64,
}

/// How noisy the machine was.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(super) struct Noise {
    /// The middle design's distance between the quartiles, in per cent of its median.
    pub(super) spread_percent: f64,
    /// CPU time that the threads wanted and that others had, in per cent. What runs by turns
    /// meets no contention, and ranks as if it never would.
    pub(super) taken_percent: f64,
    /// Beyond this, of either, there is a warning.
    pub(super) limit_percent: f64,
}

impl Noise {
    /// Whether there is more noise than the limit.
    pub(super) fn is_too_much(self) -> bool {
        self.spread_percent.max(self.taken_percent) > self.limit_percent
    }

    /// What is noisy.
    fn what(self) -> String {
        if self.taken_percent > self.limit_percent {
            format!(
                "other programs had {} % of the CPU time that the threads wanted, so that they \
                 rarely met each other",
                units::figures(self.taken_percent)
            )
        } else {
            format!(
                "half of the rounds of a typical design lie {} % apart",
                units::figures(self.spread_percent)
            )
        }
    }

    /// What a recommendation in spite of the noise rests on.
    fn warn(self) -> String {
        format!(
            "This machine is noisy: {}. Designs were compared within rounds, so that noise that \
             all share cancels; how they meet with the machine to themselves may differ.",
            self.what()
        )
    }

    /// Why nothing can be told, and what to do about it.
    fn explain(self) -> String {
        let why =
            if self.is_too_much() { self.what() } else { "the rounds are too few".to_owned() };
        format!(
            "No design can be told from any other: {why}. Close what else runs, or take longer \
             rounds (--run-ms) or more of them (--rounds)."
        )
    }
}

impl Report {
    /// Reads that saw a wrong value, anywhere.
    pub(super) fn checksum_errors(&self) -> u64 {
        let in_ranking: u64 = self.places.iter().map(|place| place.checksum_errors).sum();
        in_ranking + self.checksum_errors_in_sweeps
    }

    /// Whether nothing at all can be told: no design is out, and what is lost with the one to take
    /// has no bound, as with fewer than three rounds.
    pub(super) fn nothing_told(&self) -> bool {
        let is_out = |place: &Place| !place.standing.is_in_set();
        let is_known = |choice: &Place| choice.lost_percent_at_most.is_some();
        !self.places.is_empty()
            && !self.places.iter().any(is_out)
            && !verdict::recommended(&self.places).is_some_and(is_known)
    }

    /// Where the answer flips.
    pub(super) fn flips(&self) -> Vec<Flip> {
        self.sweeps.iter().flat_map(Sweep::flips).collect()
    }

    /// What to do, a paragraph for each thing to know; why there is nothing to say otherwise.
    pub(super) fn recommendation(&self) -> Vec<String> {
        let mut paragraphs = Vec::new();
        if self.checksum_errors() > 0 {
            paragraphs.push(format!(
                "Readers saw {} wrong values: a design is broken here, and nothing can be \
                 recommended. Please report this.",
                units::count(self.checksum_errors())
            ));
            return paragraphs;
        }
        if self.interrupted {
            paragraphs.push(match self.places.first() {
                None => "Interrupted before the first round was over.".to_owned(),
                Some(place) => format!(
                    "Interrupted: the ranking is from {} of {} rounds.",
                    place.rounds.len(),
                    self.workload.rounds
                ),
            });
        }
        if self.nothing_told() {
            paragraphs.push(self.noise.explain());
            return paragraphs;
        }
        if self.noise.is_too_much() {
            paragraphs.push(self.noise.warn());
        }
        paragraphs.extend(verdict::paragraphs(
            &self.places,
            &self.sweeps,
            self.workload.value_bytes,
        ));
        if let Some(path) = self.decision() {
            paragraphs.extend(path.paragraphs(&self.places));
        }
        paragraphs.extend(remarks::large_values(&self.workload));
        if self.cut_short {
            paragraphs.push(
                "Time was up before every setting was tried; without --quick all are.".to_owned(),
            );
        }
        paragraphs
    }

    /// The design to take, if anything can be recommended.
    pub(super) fn recommended(&self) -> Option<&Place> {
        let may = !self.nothing_told() && self.checksum_errors() == 0;
        verdict::recommended(&self.places).filter(|_| may)
    }

    /// The path through the decision tree, if the kind has one.
    pub(super) fn decision(&self) -> Option<tree::Path> {
        tree::path(&self.workload)
    }

    /// What the ranking does not show by itself.
    pub(super) fn disclosures(&self) -> Vec<String> {
        remarks::disclosures(&self.workload, &self.places)
    }

    /// Prints what the ranking is about; before anything is measured.
    pub(super) fn print_input(&self, output: &mut Output) -> Result<(), Failure> {
        output.heading(format!("Workload: {}", self.workload.name))?;
        output.entries([
            ("what", self.workload.to_string()),
            ("keys", describe_keys(&self.keys)),
            ("seed", self.seed.to_string()),
        ])?;
        for note in self.keys.notes() {
            output.note(format!("{}: {note}", self.keys.source));
        }
        Ok(())
    }

    /// Prints everything after the costs.
    pub(super) fn print(&self, output: &mut Output) -> Result<(), Failure> {
        if !self.places.is_empty() {
            output.heading("Ranking")?;
            output.table(ranking_table(&self.places))?;
            output.paragraph(TABLE_LEGEND)?;
            for remark in self.disclosures() {
                output.paragraph(remark)?;
            }
            output.heading("Why")?;
            let reason = |place: &Place| (place.design.name, sentence(place.design.reader_cost));
            output.entries(self.places.iter().map(reason))?;
        }
        if self.sweeps.iter().any(|sweep| !sweep.points.is_empty()) {
            output.heading("Where the answer flips")?;
            for sweep in self.sweeps.iter().filter(|sweep| !sweep.points.is_empty()) {
                output.table(sweep_table(sweep))?;
                output.line("")?;
            }
            output.paragraph(format!("Millions of operations a second; {STAR_LEGEND}"))?;
        }
        output.heading("Recommendation")?;
        for paragraph in self.recommendation() {
            output.paragraph(paragraph)?;
        }
        if let Some(choice) = self.recommended() {
            let (head, program) = remarks::code(choice);
            output.heading("Code to paste")?;
            output.paragraph(head)?;
            output.line(program)?;
        }
        Ok(())
    }
}

/// What the star of a sweep means.
pub(super) const STAR_LEGEND: &str = "* is one to take: not shown to lose more than a tenth.";

/// What the columns of the ranking mean.
pub(super) const TABLE_LEGEND: &str = "Same rank: within noise. Mop/s: millions of operations a second, median over the rounds. ±: \
     from the lower to the upper quartile, in per cent of the median. behind: how many times as \
     fast the first one is. update: latency that one update in a thousand exceeds. waiting: \
     replaced values not yet freed, at most. CPU: process time for an operation.";

/// Why a design is where it is: what it asks of readers, and what else stands out.
pub(super) fn reason(place: &Place) -> String {
    format!("{}. Not for: {}.", sentence(place.design.reader_cost), place.design.limits)
}

/// With a capital letter.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_uppercase().collect::<String>() + letters.as_str()
    })
}

/// How many keys of what.
pub(super) fn describe_keys(keys: &Census) -> String {
    let limit = if keys.truncated { "; there are more, see --max-keys" } else { "" };
    format!(
        "{} {} ({}, {} on average{limit})",
        units::count(keys.count),
        keys.source,
        units::bytes(keys.bytes),
        units::bytes(keys.bytes / keys.count.max(1))
    )
}

/// The header of the ranking, for the terminal and for the page.
pub(super) const RANKING_HEADER: [&str; 8] =
    ["#", "design", "Mop/s", "±", "behind", "update", "waiting", "CPU"];

/// The cells of one line of the ranking.
pub(super) fn ranking_cells(place: &Place) -> [String; 8] {
    let behind = match place.rank {
        1 => "–".to_owned(),
        _ => format!("{}x", units::figures(place.first_is_faster.median)),
    };
    [
        place.rank.to_string(),
        place.design.name.to_owned(),
        units::figures(place.throughput.median / 1e6),
        match spread_percent(&place.throughput) {
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
    let mut table = output::table(&RANKING_HEADER);
    for place in places {
        let cells = ranking_cells(place).map(comfy_table::Cell::new);
        let ours = place.design.ours;
        table.add_row(cells.map(|cell| match ours {
            true => cell.add_attribute(comfy_table::Attribute::Bold),
            false => cell,
        }));
    }
    output::numeric(&mut table, [0, 2, 3, 4, 5, 6, 7]);
    table
}

/// The header of a sweep's table: the design, then the settings.
pub(super) fn sweep_header(sweep: &Sweep) -> Vec<String> {
    let settings = sweep.points.iter().map(|point| sweep.over.column(point.value));
    std::iter::once(sweep.over.title().to_owned()).chain(settings).collect()
}

/// A line of a sweep's table; a star marks the first and the thread that is within noise of it.
pub(super) fn sweep_cells(sweep: &Sweep, design: &str) -> Vec<String> {
    let cell = |point: &super::sweep::Point| {
        let place = point.places.iter().find(|place| place.design.name == design);
        place.map_or_else(
            || "–".to_owned(),
            |place| {
                let star = if place.standing.is_in_set() { "*" } else { " " };
                format!("{}{star}", units::figures(place.throughput.median / 1e6))
            },
        )
    };
    std::iter::once(design.to_owned()).chain(sweep.points.iter().map(cell)).collect()
}

fn sweep_table(sweep: &Sweep) -> comfy_table::Table {
    let header = sweep_header(sweep);
    let mut table = output::table(&header.iter().map(String::as_str).collect::<Vec<_>>());
    for design in sweep.designs() {
        table.add_row(sweep_cells(sweep, design));
    }
    output::numeric(&mut table, 1..header.len());
    table
}
