//! Published figures, run again: each file here sets against one publication rows of what it says
//! and what the model gives.
//!
//! A row says how it came about: a figure that a parameter was *fitted* on shows only that the
//! model can give it; one that is *predicted* from parameters fitted elsewhere shows that the
//! mechanism is the right one; an *input* is what the model was given. What is not modelled is a
//! row too, with the reason. Numbers are floating point here and only here: rows are printed, they
//! decide nothing.

pub mod costs;
pub mod lwn2014;
pub mod prefetch;
pub mod semaphore;
pub mod settings;
pub mod srcu2022;
pub mod usenix2003;

/// One published figure, or one published statement, beside what the model gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Where it was published: the table of `figures.toml`, as in `usenix2003.table3`.
    pub source: &'static str,
    /// Which of its figures: `rcu-sched ms_per_iteration`.
    pub figure: String,
    /// What was published and what the model gives.
    pub finding: Finding,
    /// How the model's number came about.
    pub role: Role,
    /// What brings the number about, in a line; for what is not modelled, why not.
    pub mechanism: String,
}

/// What was published and what the model gives.
#[derive(Clone, Debug, PartialEq)]
pub enum Finding {
    /// A number.
    Number {
        /// As published.
        published: f64,
        /// As the model gives it, in the same unit; `None` if it is not modelled.
        ours: Option<f64>,
        /// The unit of both: `s`, `ms`, `ns`, `%`, `1/s`.
        unit: &'static str,
    },
    /// A statement: an ordering, an order of magnitude, a limit.
    Statement {
        /// As published.
        published: String,
        /// What the model gives, in words with numbers; empty if it is not modelled.
        ours: String,
        /// Whether what the model gives agrees.
        holds: bool,
    },
}

/// How a number of the model came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A parameter of the model was chosen so that this comes out.
    Fitted,
    /// It follows from parameters that were chosen without it.
    Predicted,
    /// The model was given it.
    Input,
    /// The model has nothing to say about it.
    NotModelled,
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
}

/// All of them, in the order in which they were published.
pub const PARTS: &[Part] = &[
    Part { source: "usenix2003.table3", about_ms: 8_000, rows: usenix2003::rows },
    Part { source: "usenix2003.semop", about_ms: 1_000, rows: semaphore::rows },
    Part { source: "lca2005.costs_ns", about_ms: 1, rows: costs::rows },
    Part { source: "vajapan2005.wakeup", about_ms: 1, rows: prefetch::rows },
    Part { source: "lwn2014", about_ms: 10_000, rows: lwn2014::rows },
    Part { source: "lkml2022.srcu", about_ms: 10_000, rows: srcu2022::rows },
    Part { source: "settings", about_ms: 1, rows: settings::rows },
];

/// How a row compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fit {
    /// The ratio of ours to the published is within [`Row::FIT`], or the statement holds.
    Fits,
    /// It is not, or it does not.
    Misses,
    /// There is nothing to compare: an input, or not modelled.
    NotCompared,
}

impl Row {
    /// From where to where the ratio of our figure to the published one fits.
    pub const FIT: (f64, f64) = (0.75, 1.33);

    /// Our figure over the published one, where both are numbers and the published one is not 0.
    pub fn ratio(&self) -> Option<f64> {
        match self.finding {
            Finding::Number { published, ours: Some(ours), .. } if published != 0.0 => {
                Some(ours / published)
            }
            _ => None,
        }
    }

    /// How the row compares.
    pub fn fit(&self) -> Fit {
        if matches!(self.role, Role::Input | Role::NotModelled) {
            return Fit::NotCompared;
        }
        let fits = match &self.finding {
            Finding::Statement { holds, .. } => *holds,
            Finding::Number { .. } => {
                self.ratio().is_some_and(|ratio| (Self::FIT.0..=Self::FIT.1).contains(&ratio))
            }
        };
        if fits { Fit::Fits } else { Fit::Misses }
    }

    /// A number that the model gives.
    pub fn number(
        source: &'static str,
        figure: impl Into<String>,
        (published, ours, unit): (f64, f64, &'static str),
        role: Role,
        mechanism: impl Into<String>,
    ) -> Self {
        let finding = Finding::Number { published, ours: Some(ours), unit };
        Self { source, figure: figure.into(), finding, role, mechanism: mechanism.into() }
    }

    /// A number that the model is given.
    pub fn input(
        source: &'static str,
        figure: impl Into<String>,
        (value, unit): (f64, &'static str),
        purpose: impl Into<String>,
    ) -> Self {
        Self::number(source, figure, (value, value, unit), Role::Input, purpose)
    }

    /// A number that the model has nothing to say about.
    pub fn not_modelled(
        source: &'static str,
        figure: impl Into<String>,
        (published, unit): (f64, &'static str),
        reason: impl Into<String>,
    ) -> Self {
        Self {
            source,
            figure: figure.into(),
            finding: Finding::Number { published, ours: None, unit },
            role: Role::NotModelled,
            mechanism: reason.into(),
        }
    }

    /// A statement, and whether it holds in the model: `ours` is what was found, with its numbers.
    pub fn statement(
        source: &'static str,
        figure: impl Into<String>,
        published: impl Into<String>,
        (ours, holds): (String, bool),
        mechanism: impl Into<String>,
    ) -> Self {
        Self {
            source,
            figure: figure.into(),
            finding: Finding::Statement { published: published.into(), ours, holds },
            role: Role::Predicted,
            mechanism: mechanism.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_fits_within_a_quarter_below_and_a_third_above() {
        let fit = |ours| Row::number("s", "f", (100.0, ours, "s"), Role::Predicted, "m").fit();
        assert_eq!([fit(75.0), fit(100.0), fit(133.0)], [Fit::Fits; 3]);
        assert_eq!([fit(74.9), fit(133.1), fit(f64::NAN)], [Fit::Misses; 3]);
    }

    #[test]
    fn what_is_given_or_left_out_is_not_compared() {
        assert_eq!(Row::input("s", "f", (1.0, "s"), "p").fit(), Fit::NotCompared);
        let row = Row::not_modelled("s", "f", (1.0, "s"), "r");
        assert_eq!((row.fit(), row.ratio()), (Fit::NotCompared, None));
        let row = Row::number("s", "f", (0.0, 1.0, "s"), Role::Predicted, "m");
        assert_eq!((row.fit(), row.ratio()), (Fit::Misses, None), "nothing is a multiple of 0");
    }

    #[test]
    fn a_statement_holds_or_misses() {
        let fit = |holds| Row::statement("s", "f", "a < b", ("1 < 2".into(), holds), "m").fit();
        assert_eq!((fit(true), fit(false)), (Fit::Fits, Fit::Misses));
    }
}
