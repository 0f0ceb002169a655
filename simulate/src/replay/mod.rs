//! Published figures, run again: each file here sets against one publication rows of what it says
//! and what the model gives.
//!
//! A row says how it came about: a figure that a parameter was *fitted* on shows only that the
//! model can give it; one that is *predicted* from parameters fitted elsewhere shows that the
//! mechanism is the right one; an *input* is what the model was given. What is not modelled is a
//! row too, with the reason. A row also says how far the inputs leave it free to fail ([`row`]),
//! and a publication which parameters were fitted on it ([`Part::fitted`]). Numbers are floating
//! point here and only here: rows are printed, they decide nothing.

pub mod costs;
pub mod lwn2014;
pub mod prefetch;
pub mod row;
pub mod semaphore;
pub mod settings;
pub mod srcu2022;
pub mod usenix2003;

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
}

/// All of them, in the order in which they were published.
pub const PARTS: &[Part] = &[
    Part {
        source: "usenix2003.table3",
        about_ms: 8_000,
        rows: usenix2003::rows,
        fitted: usenix2003::FITTED,
    },
    Part {
        source: "usenix2003.semop",
        about_ms: 1_000,
        rows: semaphore::rows,
        fitted: semaphore::FITTED,
    },
    Part { source: "lca2005.costs_ns", about_ms: 1, rows: costs::rows, fitted: &[] },
    Part { source: "vajapan2005.wakeup", about_ms: 1, rows: prefetch::rows, fitted: &[] },
    Part { source: "lwn2014", about_ms: 15_000, rows: lwn2014::rows, fitted: lwn2014::FITTED },
    Part {
        source: "lkml2022.srcu",
        about_ms: 2_000,
        rows: srcu2022::rows,
        fitted: srcu2022::FITTED,
    },
    Part { source: "settings", about_ms: 1, rows: settings::rows, fitted: &[] },
];

/// A parameter is fitted on a figure that is a row, and each row that is fitted has one.
#[cfg(test)]
fn assert_fitted(fitted: &[Fitted], rows: &[Row]) {
    for one in fitted {
        let is_meant = |row: &&Row| row.source == one.source && row.figure.starts_with(one.on);
        let row = rows.iter().find(is_meant);
        assert_eq!(row.map(|row| row.role), Some(Role::Fitted), "{one:?}");
    }
    for row in rows.iter().filter(|row| row.role == Role::Fitted) {
        assert!(fitted.iter().any(|one| one.source == row.source), "{row:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_fitted_is_said_of_the_publication_it_is_fitted_on() {
        for part in PARTS {
            let stem = part.source.split('.').next();
            let mut sources = part.fitted.iter().map(|one| one.source.split('.').next());
            assert!(sources.all(|source| source == stem), "{}", part.source);
        }
    }
}
