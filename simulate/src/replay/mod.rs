//! Replays of published figures. Each file here has one publication: its rows compare what it says
//! (in the `*.toml` of the same name) with what the model gives.
//!
//! A row states the role of its figure. If a parameter was *fitted* on it, it shows only that the
//! model can produce it. If it is *predicted* from parameters fitted elsewhere, it shows that the
//! mechanism is right. An *input* was given to the model. A figure that is not modelled has a row
//! too, with the reason. A row also says how far the inputs leave it free to fail ([`row`]), and a
//! publication says which parameters were fitted on it ([`Part::fitted`]). Only this module uses
//! floating point: rows are printed, and decide nothing.

mod at_once;
pub mod costs;
pub mod lwn2014;
pub mod prefetch;
mod published;
pub mod row;
pub mod semaphore;
pub mod settings;
pub mod srcu2022;
pub mod usenix2003;

use crate::cost::Costs;
use crate::workload::Workload;

pub use row::{Finding, Fit, Freedom, Role, Row, typical_factor};

/// A number of a model that was chosen so that a published figure comes out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Fitted {
    /// The publication, as in [`Row::source`].
    pub source: &'static str,
    /// What was chosen, with its value.
    pub parameter: &'static str,
    /// The figure that it was chosen on.
    pub on: &'static str,
}

const fn fitted(source: &'static str, parameter: &'static str, on: &'static str) -> Fitted {
    Fitted { source, parameter, on }
}

const fn part(
    source: &'static str,
    about_ms: u64,
    rows: fn() -> Vec<Row>,
    fitted: &'static [Fitted],
    variations: fn() -> Vec<Variation>,
) -> Part {
    Part { source, about_ms, rows, fitted, variations }
}

/// A replay with an estimate changed, or without a mechanism that the publication names. What was
/// fitted is not fitted anew.
pub struct Variation {
    /// What is changed.
    pub what: String,
    /// The row that must miss, or how its figure begins, since what is removed brings it about.
    pub must_miss: Option<&'static str>,
    /// Replays it.
    pub rows: Box<dyn Fn() -> Vec<Row> + Sync>,
}

impl std::fmt::Debug for Variation {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.what)
    }
}

/// A number of a workload: of which one, its name, and what it is.
type Number = (&'static str, &'static str, u64);

/// An estimate, likewise, and two other values.
type Estimate = (&'static str, &'static str, [u64; 2]);

/// A workload with these numbers, and with the one that is changed, if it is its own. What is named
/// here is there, and in its range.
fn workload(name: &str, numbers: &[(&str, u64)], changed: Option<Number>) -> Workload {
    let mut workload = possible(Workload::named(name));
    numbers.iter().for_each(|(number, value)| possible(workload.set(number, *value)));
    if let Some((_, number, value)) = changed.filter(|(of, ..)| *of == name) {
        assert_ne!(workload.get(number), value, "{number} of {name} is that already");
        possible(workload.set(number, value));
    }
    workload
}

fn possible<T>(result: Result<T, crate::Impossible>) -> T {
    result.unwrap_or_else(|impossible| panic!("{impossible}"))
}

impl Variation {
    /// Replays with each value of these estimates.
    fn of_each(
        estimates: &'static [Estimate],
        rows: fn(Number) -> Vec<Row>,
    ) -> impl Iterator<Item = Self> {
        estimates.iter().flat_map(move |&(of, number, values)| {
            values.map(|value| {
                Self::of(format!("{number} of {of}: {value}"), move || rows((of, number, value)))
            })
        })
    }

    /// Replays with half and with twice of what is estimated in these costs.
    fn of_costs(usual: Costs, rows: fn(Costs) -> Vec<Row>) -> impl Iterator<Item = Self> {
        [50, 200].into_iter().flat_map(move |percent| {
            [
                ("interrupts, switches and callbacks", usual.with_estimates(percent)),
                ("entry and exit of an engine's function", usual.with_engine(percent)),
            ]
            .map(|(what, costs)| Self::of(format!("{percent} % for {what}"), move || rows(costs)))
        })
    }

    fn of(what: impl Into<String>, rows: impl Fn() -> Vec<Row> + Sync + 'static) -> Self {
        Self { what: what.into(), must_miss: None, rows: Box::new(rows) }
    }

    fn missing(self, figure: &'static str) -> Self {
        Self { must_miss: Some(figure), ..self }
    }

    /// Whether the row that must miss is among these, and does.
    pub fn misses(&self, rows: &[Row]) -> bool {
        let is_meant =
            |row: &Row| self.must_miss.is_some_and(|meant| row.figure.starts_with(meant));
        rows.iter().any(|row| is_meant(row) && row.fit() == Fit::Misses)
    }
}

/// A publication that is replayed; parts do not depend on each other.
#[derive(Clone, Copy, Debug)]
pub struct Part {
    /// Which one, as in [`Row::source`], or the beginning of it.
    pub source: &'static str,
    /// About how long it takes, in milliseconds of one CPU.
    pub about_ms: u64,
    /// Replays it.
    pub rows: fn() -> Vec<Row>,
    /// What was fitted on it.
    pub fitted: &'static [Fitted],
    /// What can be changed: estimates, and mechanisms that it names.
    pub variations: fn() -> Vec<Variation>,
}

/// All of them, in the order in which they were published.
pub const PARTS: &[Part] = &[
    part("usenix2003.table3", 13_000, usenix2003::rows, usenix2003::FITTED, usenix2003::variations),
    part("usenix2003.semop", 1_000, semaphore::rows, semaphore::FITTED, semaphore::variations),
    part("lca2005.costs_ns", 1, costs::rows, &[], Vec::new),
    part("vajapan2005.wakeup", 1, prefetch::rows, &[], prefetch::variations),
    part("lwn2014", 90_000, lwn2014::rows, lwn2014::FITTED, lwn2014::variations),
    part("lkml2022.srcu", 2_000, srcu2022::rows, srcu2022::FITTED, srcu2022::variations),
    part("settings", 1, settings::rows, &[], Vec::new),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// All that is modelled is filled in, and a mechanism that a publication names is not there for
    /// show. Of what is quick to replay; `rcu simulate --published --vary` looks at all.
    #[test]
    fn without_a_mechanism_its_row_misses() {
        let mut removed = 0;
        for part in PARTS.iter().filter(|part| part.about_ms <= 2_000) {
            let with = (part.rows)();
            for row in &with {
                let is_filled = !matches!(row.finding, Finding::Number { ours: None, .. });
                assert_eq!(is_filled, row.role != Role::NotModelled, "{row:?}");
                assert!(!row.mechanism.is_empty(), "{row:?}");
            }
            let variations = (part.variations)().into_iter().filter(|one| one.must_miss.is_some());
            for variation in variations {
                removed += 1;
                let without = (variation.rows)();
                assert!(!variation.misses(&with), "{variation:?}: it misses with it, too");
                assert!(variation.misses(&without), "{variation:?}: it fits without it, too");
            }
        }
        assert!(removed >= 7, "{removed}");
    }

    #[test]
    fn each_estimate_is_a_number_of_its_workload_in_its_range() {
        for &(of, number, values) in [usenix2003::ESTIMATES, lwn2014::ESTIMATES].concat().iter() {
            let [low, high] = values;
            for (used, value) in [(low, high), (high, low)] {
                let changed = workload(of, &[(number, used)], Some((of, number, value)));
                assert_eq!(changed.get(number), value, "{of}");
            }
            let other = workload("idle", &[], Some((of, number, values[0])));
            assert_eq!(Ok(other), Workload::named("idle"), "{of}'s is not its own");
        }
    }

    #[test]
    fn what_is_fitted_is_said_of_the_publication_it_is_fitted_on() {
        for part in PARTS {
            let stem = part.source.split('.').next();
            let mut sources = part.fitted.iter().map(|one| one.source.split('.').next());
            assert!(sources.all(|source| source == stem), "{}", part.source);
        }
    }
}
