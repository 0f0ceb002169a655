//! What grew, as a table, as JSON, and as a page with flame graphs.

use bench::units;
use serde_json::{Value, json};

use super::Scale;
use super::flame;
use super::rank::{Growth, Side, rank};
use crate::html::{self, Markup};
use crate::output::{self, Output, SchemaId};

pub(super) const SCHEMA: SchemaId = SchemaId("quiescence/diff", 1);

/// Both sides, measured.
#[derive(Debug)]
pub(super) struct Report {
    pub(super) sides: [Side; 2],
    pub(super) scale: Scale,
}

const HEADER: [&str; 6] = ["", "A", "B", "growth", "±", "with callees"];

impl Report {
    pub(super) fn written(&self, cost: f64) -> String {
        match self.scale {
            Scale::NanosecondsPerOperation => units::nanoseconds(cost),
            Scale::SamplesPerUnit => units::ratio(cost),
            Scale::Percent => format!("{} %", units::figures(cost)),
        }
    }

    fn explanation(&self) -> String {
        let [a, b] = self.sides.each_ref().map(|Side { name, samples, unit_cost, .. }| {
            let samples = units::count(*samples);
            format!("{name}: {samples} samples, {}", self.written(*unit_cost))
        });
        let scale = match self.scale {
            Scale::NanosecondsPerOperation => "nanoseconds of an operation in one run, by samples",
            Scale::SamplesPerUnit => "samples for a unit of work",
            Scale::Percent => "per cent of all samples: --work-a and --work-b give units of work",
        };
        format!(
            "A is {a}. B is {b}. Figures are {scale}. Growth is in the function itself, ± is what \
             chance allows the samples at 95 %; the last column is the growth with all that it \
             calls."
        )
    }

    /// The functions that grew most, and those that shrank most.
    fn ends(&self, top: usize) -> Vec<Growth> {
        let ranked = rank(&self.sides);
        let grew = ranked.iter().filter(|each| each.growth() > 0.0).take(top);
        let mut shrank: Vec<&Growth> =
            ranked.iter().rev().filter(|each| each.growth() < 0.0).take(top).collect();
        shrank.reverse();
        grew.chain(shrank).cloned().collect()
    }

    fn cells(&self, each: &Growth) -> [String; 6] {
        let signed = |cost: f64| {
            let sign = if cost < 0.0 { "-" } else { "+" };
            format!("{sign}{}", self.written(cost.abs()))
        };
        [
            each.function.clone(),
            self.written(each.before),
            self.written(each.after),
            signed(each.growth()),
            self.written(each.error),
            signed(each.total_after - each.total_before),
        ]
    }

    pub(super) fn print(&self, top: usize, output: &mut Output) {
        /// A longer name leaves no room for figures.
        const NAME_MAX: usize = 46;
        output.paragraph(self.explanation());
        let row = |each: Growth| {
            let mut cells = self.cells(&each);
            cells[0] = flame::shortened(&cells[0], NAME_MAX);
            cells
        };
        let ends = self.ends(top);
        if !ends.is_empty() {
            output.table(output::table(&HEADER, 1.., ends.into_iter().map(row)));
        } else if top != 0 {
            output.paragraph("No function costs more or less in B than in A.");
        }
        output.picture(|| self.graph("As wide as after (B): red grew, blue shrank", 1));
        output.picture(|| self.graph("As wide as before (A): blue shrank or is gone", 0));
        output.picture(|| self.functions());
    }

    pub(super) fn document(&self) -> Value {
        let [a, b] = &self.sides;
        json!({ "a": a, "b": b, "scale": self.scale, "functions": rank(&self.sides) })
    }

    fn graph(&self, title: &str, side: usize) -> Markup {
        html::titled(title, |part| flame::draw(part, title, self, side))
    }

    /// More functions than a window has room for, with their whole names.
    fn functions(&self) -> Markup {
        /// Beyond that a table is nothing to read.
        const FUNCTIONS: usize = 40;
        let rows = self.ends(FUNCTIONS).into_iter().map(|each| self.cells(&each));
        let table = output::table(&HEADER, [], rows);
        html::titled("Functions", |part| html::figures(part, &table))
    }
}
