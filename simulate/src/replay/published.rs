//! The figures of publications, from the `*.toml` of this folder: a row for each, into which the
//! model's number is filled.
//!
//! Code names a figure by its `id`, or by its text if it has none. A `{}` in a text is replaced by
//! one of the model's numbers.

use serde::Deserialize;

use super::row::{Finding, Fit, Freedom, Role, Row};

#[derive(Deserialize)]
struct Text {
    #[serde(default)]
    seeds: u64,
    source: Vec<Source>,
}

/// A source, with what most of its rows have.
#[derive(Deserialize)]
struct Source {
    name: String,
    #[serde(default)]
    unit: String,
    role: Role,
    #[serde(default)]
    why: String,
    rows: Vec<Figure>,
}

#[derive(Deserialize)]
struct Figure {
    id: Option<String>,
    figure: String,
    published: Value,
    unit: Option<String>,
    /// Of a statement, what the model gives.
    #[serde(default)]
    ours: String,
    role: Option<Role>,
    /// It cannot fail.
    #[serde(default)]
    bound: bool,
    why: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Value {
    Number(f64),
    Statement(String),
}

/// A publication.
pub(super) struct Publication {
    /// Its rows, by the names of their figures.
    rows: Vec<(String, Row)>,
    /// How many seeds the figures are means over that one seed does not decide.
    pub(super) seeds: u64,
}

impl Publication {
    /// Reads a publication, which is part of the program.
    ///
    /// # Panics
    /// If it is not as it should be.
    pub(super) fn read(text: &str) -> Self {
        let read: Text = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
        let mut rows = Vec::new();
        for source in read.source {
            let (name, unit): (&str, &str) = (source.name.leak(), source.unit.leak());
            for Figure { id, figure, published, unit: own, ours, role, bound, why } in source.rows {
                let role = role.unwrap_or(source.role);
                let why = why.unwrap_or_else(|| source.why.clone());
                let id = id.unwrap_or_else(|| figure.clone());
                let unit = own.map_or(unit, |own| own.leak());
                let row = match published {
                    Value::Statement(published) => {
                        Row::statement(name, figure, published, (ours, false), why)
                    }
                    Value::Number(value) => {
                        let given = (role == Role::Input).then_some(value);
                        Row::number(name, figure, (value, given, unit), role, why)
                    }
                };
                let is_free = role == Role::Predicted && !bound;
                let freedom = if is_free { Freedom::Free } else { Freedom::None };
                rows.push((id, Row { role, freedom, ..row }));
            }
        }
        Self { rows, seeds: read.seeds }
    }

    /// The rows, with all that was filled in.
    ///
    /// # Panics
    /// If something was not.
    pub(super) fn rows(self) -> Vec<Row> {
        let filled = |(id, row): (String, Row)| {
            let is_open = |text: &str| text.contains("{}");
            let ours_is_open =
                matches!(&row.finding, Finding::Statement { ours, .. } if is_open(ours));
            assert!(!ours_is_open && !is_open(&row.mechanism), "{id} is not filled in");
            row
        };
        self.rows.into_iter().map(filled).collect()
    }

    pub(super) fn row(&mut self, id: &str) -> &mut Row {
        let found = self.rows.iter_mut().find(|(known, _)| known == id);
        &mut found.unwrap_or_else(|| unreachable!("there is no figure {id}")).1
    }

    /// The number that was published.
    pub(super) fn value(&mut self, id: &str) -> f64 {
        match self.row(id).finding {
            Finding::Number { published, .. } => published,
            Finding::Statement { .. } => unreachable!("{id} is no number"),
        }
    }

    /// The model gives this number.
    pub(super) fn number(&mut self, id: &str, number: f64) -> &mut Self {
        let Finding::Number { ours, .. } = &mut self.row(id).finding else {
            unreachable!("{id} is no number")
        };
        *ours = Some(number);
        self
    }

    /// The model gives this number, of which its inputs fix `given`: [`Freedom::Beyond`].
    pub(super) fn beyond(&mut self, id: &str, number: f64, given: f64, spread: f64) -> &mut Self {
        self.row(id).freedom = Freedom::Beyond { given, spread };
        self.number(id, number)
    }

    /// The same, where only what is beyond is compared: [`Freedom::Added`].
    pub(super) fn added(&mut self, id: &str, number: f64, given: f64, spread: f64) -> &mut Self {
        self.row(id).freedom = Freedom::Added { given, spread };
        self.number(id, number)
    }

    /// An engine that costs nothing gives this number: if it fits, the row cannot fail.
    pub(super) fn for_nothing(&mut self, id: &str, number: f64) {
        let row = self.row(id);
        let mut free = row.clone();
        if let Finding::Number { ours, .. } = &mut free.finding {
            *ours = Some(number);
        }
        if let (Fit::Fits, Freedom::Beyond { given, spread }) = (free.fit(), row.freedom) {
            row.freedom = Freedom::Bound { given, spread };
        }
    }

    /// The same of a statement.
    pub(super) fn holds_for_nothing(&mut self, id: &str, holds: bool) {
        if holds {
            self.row(id).freedom = Freedom::None;
        }
    }

    /// The model gives this number, of which its inputs fix `given`, if the row is predicted; a
    /// fitted one is as it is.
    pub(super) fn predicted(&mut self, id: &str, number: f64, given: f64) -> &mut Self {
        match self.row(id).role {
            Role::Predicted => self.beyond(id, number, given, 0.0),
            _ => self.number(id, number),
        }
    }

    /// Whether the statement holds in the model, and what is filled into what that gives.
    pub(super) fn statement(&mut self, id: &str, found: &[String], is_so: bool) -> &mut Self {
        let Finding::Statement { ours, holds, .. } = &mut self.row(id).finding else {
            unreachable!("{id} is no statement")
        };
        fill(ours, found);
        *holds = is_so;
        self
    }

    /// What is filled into what brings the figure about.
    pub(super) fn why(&mut self, id: &str, found: &[String]) -> &mut Self {
        fill(&mut self.row(id).mechanism, found);
        self
    }
}

fn fill(text: &mut String, values: &[String]) {
    for value in values {
        let place = text.split_once("{}");
        let (before, after) = place.unwrap_or_else(|| unreachable!("no place for {value}: {text}"));
        *text = format!("{before}{value}{after}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[should_panic(expected = "irqsave is not filled in")]
    fn what_is_not_filled_in_is_no_row() {
        Publication::read(include_str!("lwn2014.toml")).rows();
    }

    #[test]
    #[should_panic(expected = "plain is no statement")]
    fn a_number_is_no_statement() {
        Publication::read(include_str!("lwn2014.toml")).statement("plain", &[], true);
    }
}
