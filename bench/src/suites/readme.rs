//! `rcu bench readme`: the figures of the tables in README, all in nanoseconds.
//!
//! Some tables of other suites, of the rivals that README names. What a row or a column of README
//! is stands in `suites.toml`; the command writes it down.

use serde::Deserialize;

use super::SUITES;
use super::{Options, Suite, map};
use crate::rivals;
use crate::{Error, suites};

/// A column of a table: its heading, and the case and the metric that fill it.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct Column {
    /// What stands above it.
    pub heading: &'static str,
    /// The case.
    pub case: &'static str,
    /// Which of its metrics, all of which are in nanoseconds.
    pub metric: &'static str,
    part: Part,
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

/// The suite that a column is of, or a picture.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Part {
    Read,
    Gp,
    Update,
    Map,
}

impl Part {
    /// The suite of these rivals, as far as they are compiled in and asked for; with none, none.
    pub(super) fn prepare(
        self,
        groups: &[String],
        rivals: impl Iterator<Item = &'static str>,
        options: &Options,
    ) -> Result<Option<Suite>, Error> {
        let is_wanted = |name: &&str| {
            let is_compiled_in = rivals::all().any(|rival| rival.name == *name);
            is_compiled_in && (options.only.is_empty() || options.only.iter().any(|o| o == name))
        };
        let only: Vec<_> = rivals.filter(is_wanted).map(str::to_owned).collect();
        if only.is_empty() {
            return Ok(None);
        }
        let options = Options { only, ..options.clone() };
        let suite = match self {
            Part::Read => SUITES.read.prepare(groups, &options),
            Part::Gp => SUITES.gp.prepare(groups, &options),
            Part::Update => SUITES.update.prepare(groups, &options),
            Part::Map => {
                let (entries, threads) = (vec![ENTRIES], vec![2]);
                map::prepare(
                    groups,
                    &map::Load { entries, threads, ..map::Load::default() },
                    &options,
                )
            }
        };
        suite.map(Some)
    }
}

/// Entries of the maps, the fewest that `rcu bench map` has.
const ENTRIES: u64 = 1000;

impl Row {
    /// Who is measured for this column, if there is one.
    pub fn rival(&self, column: &Column) -> Option<&'static str> {
        if column.part == Part::Update { self.replaces } else { Some(self.reads) }
    }
}

/// All rivals of a part, or of all of them.
fn names(of: Option<Part>) -> Vec<&'static str> {
    let mut names: Vec<&str> = Vec::new();
    for table in &SUITES.readme {
        let columns = table.columns.iter().filter(|column| of.is_none_or(|of| of == column.part));
        for column in columns {
            for name in table.rows.iter().filter_map(|row| row.rival(column)) {
                if !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    names
}

/// The suite, ready to run: all that is in the tables and compiled in.
///
/// # Errors
/// If a rival is named that is in none of them, or a base: there are no ratios.
pub fn prepare(options: &Options) -> Result<Suite, Error> {
    if options.base.is_some() {
        return Err(Error::Usage("--base: the tables of README have no ratios".to_owned()));
    }
    let known = names(None);
    if let Some(unknown) = options.only.iter().find(|name| !known.contains(&name.as_str())) {
        return Err(suites::unknown(unknown, &known));
    }
    let mut planned = Vec::new();
    for (part, groups) in [
        (Part::Read, &SUITES.read.groups),
        (Part::Update, &SUITES.update.groups),
        (Part::Map, &SUITES.map.groups),
    ] {
        let first = [groups[0].0.to_owned()];
        let suite = part.prepare(&first, names(Some(part)).into_iter(), options)?;
        planned.extend(suite.into_iter().flat_map(|suite| suite.planned));
    }
    Ok(Suite::new("readme", "quiescence", planned))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::host::Quiet;
    use crate::suites::rounds::Unit;

    #[test]
    fn every_rival_of_the_tables_is_one() {
        for name in names(None) {
            let is_known = rivals::all().any(|rival| rival.name == name);
            assert!(is_known || rivals::left_out(name).is_some(), "{name}");
        }
    }

    #[test]
    fn every_column_is_measured_in_nanoseconds() {
        let only: Vec<String> =
            ["quiescence", "std-rwlock", "quiescence-hashmap"].map(str::to_owned).into();
        let options = Options { quick: true, rounds: Some(1), only, ..Options::default() };
        let suite = prepare(&options).unwrap();
        let (cases, _) = suite.run(&mut Quiet::default(), &options).unwrap();
        for column in SUITES.readme.iter().flat_map(|table| &table.columns) {
            let case = cases.iter().find(|case| case.id == column.case).expect(column.case);
            let metric = case.metrics.iter().find(|metric| metric.name == column.metric);
            assert_eq!(metric.map(|metric| metric.unit), Some(Unit::Nanoseconds), "{column:?}");
        }
        assert_eq!(cases.len(), 6, "no other case takes time");
    }

    #[test]
    fn a_rival_that_is_in_no_table_is_refused_and_so_is_a_base() {
        let base = Options { base: Some("seize".to_owned()), ..Options::default() };
        assert!(matches!(prepare(&base), Err(Error::Usage(message)) if message.contains("--base")));
        let options = Options { only: vec!["parking_lot-mutex".to_owned()], ..Options::default() };
        assert!(
            matches!(prepare(&options), Err(Error::Usage(message)) if message.contains("seize"))
        );
    }
}
