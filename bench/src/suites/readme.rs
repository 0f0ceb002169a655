//! `rcu bench readme`: the figures of the tables in README, all in nanoseconds.
//!
//! Some tables of other suites, of the rivals that README names. What a row or a column of README
//! is stands in `suites.toml`; the command writes it down.

use std::collections::BTreeSet;

use serde::Deserialize;

use super::{Options, SUITES, Suite, map, unknown};
use crate::{Error, rivals};

/// A column of a table: its heading, and the case and the metric that fill it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Column {
    /// What stands above it.
    pub heading: &'static str,
    /// The case.
    pub case: &'static str,
    /// Which of its metrics, all of which are in nanoseconds.
    pub metric: &'static str,
    /// The suite that has the case.
    suite: &'static str,
}

/// A row of a table: its label, and who is measured for its columns.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Row {
    /// What stands before it.
    pub label: &'static str,
    /// Who reads, or looks up.
    reads: &'static str,
    /// Who replaces.
    #[serde(default)]
    replaces: Option<&'static str>,
}

/// One table.
#[derive(Debug, Deserialize)]
pub struct Table {
    /// What stands above its labels.
    pub heading: &'static str,
    /// Its columns.
    pub columns: Vec<Column>,
    /// Its rows.
    pub rows: Vec<Row>,
}

/// A figure that is shown: of which suite, of which of its cases, and whose.
pub(super) type Shown = (&'static str, &'static str, &'static str);

/// The suite of these figures, ready to run: what measures each part of them, one after the other,
/// of rivals that are compiled in and asked for. They have no ratios, says an error of `what`.
pub(super) fn suite(
    name: &'static str,
    what: &str,
    parts: &[Vec<Shown>],
    options: &Options,
) -> Result<Suite, Error> {
    if options.base.is_some() {
        return Err(Error::Usage(format!("--base: {what} have no ratios")));
    }
    let known = BTreeSet::from_iter(parts.iter().flatten().map(|(_, _, rival)| *rival));
    let is_there = |name: &str| known.contains(name) && rivals::left_out(name).is_none();
    if let Some(other) = options.only.iter().find(|name| !is_there(name)) {
        return Err(unknown(other, &Vec::from_iter(known)));
    }
    let is_wanted = |name: &str| {
        let is_compiled_in = rivals::all().any(|rival| rival.name == name);
        is_compiled_in && (options.only.is_empty() || options.only.iter().any(|o| o == name))
    };
    let mut planned = Vec::new();
    let of_part = |part| ["read", "gp", "update", "map"].map(|suite| (part, suite));
    for (part, suite) in parts.iter().flat_map(of_part) {
        let of_suite = part.iter().filter(|(of, _, rival)| *of == suite && is_wanted(rival));
        let (cases, only): (Vec<&str>, Vec<String>) =
            of_suite.map(|(_, case, rival)| (*case, (*rival).to_owned())).unzip();
        if only.is_empty() {
            continue;
        }
        let options = Options { only, ..options.clone() };
        let suite = match suite {
            "read" => SUITES.read.prepare(&[], &options),
            "gp" => SUITES.gp.prepare(&[], &options),
            "update" => SUITES.update.prepare(&[], &options),
            // As small as those of `rcu bench map` are.
            _ => {
                let (entries, threads) = (vec![1000], vec![2]);
                map::prepare(&[], &map::Load { entries, threads, ..Default::default() }, &options)
            }
        };
        planned.extend(suite?.planned.into_iter().filter(|one| cases.contains(&&*one.case.id)));
    }
    Ok(Suite::new(name, "quiescence", planned))
}

impl Row {
    /// Who is measured for this column, if there is one.
    pub fn rival(&self, column: &Column) -> Option<&'static str> {
        if column.suite == "update" { self.replaces } else { Some(self.reads) }
    }
}

/// All figures of the tables.
fn shown() -> Vec<Shown> {
    let of_table = |table: &'static Table| {
        let of_column = |column: &'static Column| {
            let rivals = table.rows.iter().filter_map(|row| row.rival(column));
            rivals.map(|rival| (column.suite, column.case, rival))
        };
        table.columns.iter().flat_map(of_column)
    };
    SUITES.readme.iter().flat_map(of_table).collect()
}

/// The suite, ready to run: all that is in the tables and compiled in.
///
/// # Errors
/// If a rival is named that is in none of them, or a base: there are no ratios.
pub fn prepare(options: &Options) -> Result<Suite, Error> {
    suite("readme", "the tables of README", &[shown()], options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Quiet;
    use crate::suites::rounds::Unit;
    use crate::suites::tests::quick;

    #[test]
    fn every_rival_of_the_tables_is_one() {
        for (_, _, name) in shown() {
            let is_known = rivals::all().any(|rival| rival.name == name);
            assert!(is_known || rivals::left_out(name).is_some(), "{name}");
        }
    }

    /// Nothing was measured of it, and nothing said.
    #[test]
    fn a_rival_that_was_left_out_was_not_missed() {
        let names = shown().into_iter().map(|(_, _, name)| name);
        for name in names.filter(|name| rivals::left_out(name).is_some()) {
            assert!(matches!(prepare(&quick(1, &[name])), Err(Error::Unsupported(_))), "{name}");
        }
    }

    #[test]
    fn every_column_is_measured_in_nanoseconds() {
        let options = quick(1, &["quiescence", "std-rwlock", "quiescence-hashmap"]);
        let suite = prepare(&options).unwrap();
        let (cases, _) = suite.run(&mut Quiet::default(), &options).unwrap();
        for column in SUITES.readme.iter().flat_map(|table| &table.columns) {
            let case = cases.iter().find(|case| case.id == column.case).expect(column.case);
            let metric = case.metrics.iter().find(|metric| metric.name == column.metric);
            assert_eq!(metric.map(|metric| metric.unit), Some(Unit::Nanoseconds), "{column:?}");
        }
        assert_eq!(cases.len(), 6, "no other case takes time");
    }
}
