//! `rcu bench read`: enter a section, load the pointer, read its word, leave; also inside another
//! section.

use super::rounds::{Metric, Unit};
use super::timed::{self, Of, Threads};
use super::{Group, Options, Suite};
use crate::Error;
use crate::rivals::{self, Rival};

const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];

/// What `--case` takes.
pub static GROUPS: [Group; 2] = [
    ("read", "A section, in one thread and in two"),
    ("nested", "A section inside another one of the thread"),
];

/// Threads that read at the same time, and how.
struct Table {
    id: &'static str,
    title: &'static str,
    of: Of,
    threads: usize,
}

const TABLES: [Table; 3] = [
    Table { id: "read/1-thread", title: "one thread", of: |rival| rival.read, threads: 1 },
    Table { id: "read/2-threads", title: "two threads", of: |rival| rival.read, threads: 2 },
    Table {
        id: "nested/1-thread",
        title: "one thread, inside another section",
        of: |rival| rival.nested,
        threads: 1,
    },
];

impl Table {
    /// The part of the name that `--case` takes.
    fn group(&self) -> &'static str {
        self.id.split('/').next().unwrap_or(self.id)
    }

    /// Those of these rivals that take part.
    fn rivals(&self, rivals: impl Iterator<Item = &'static Rival>) -> Vec<&'static Rival> {
        rivals.filter(|rival| (self.of)(rival).is_some()).collect()
    }
}

/// The suite, ready to run: the tables of these groups, or all if none is named.
///
/// # Errors
/// If a rival is named that there is not.
pub fn prepare(groups: &[String], options: &Options) -> Result<Suite, Error> {
    let is_wanted =
        |table: &Table| groups.is_empty() || groups.iter().any(|group| group == table.group());
    let tables: Vec<Table> = TABLES.into_iter().filter(is_wanted).collect();
    let takes_part = |rival: &&Rival| tables.iter().any(|table| (table.of)(rival).is_some());
    let known: Vec<_> = rivals::all().filter(takes_part).collect();
    let (rivals, base) = options.choose(&known, &["liburcu-memb", "quiescence"])?;
    let tables: Vec<_> = tables
        .into_iter()
        .map(|table| {
            let rivals = table.rivals(rivals.iter().copied());
            (table, rivals)
        })
        .filter(|(_, rivals)| !rivals.is_empty())
        .collect();
    let budget = timed::budget(options.quick);
    let measurements: usize = tables.iter().map(|(_, rivals)| rivals.len()).sum();
    Ok(Suite {
        name: "read",
        base,
        duration: budget * (options.rounds() * measurements as u32),
        measure: Box::new(move |session| {
            let measure = |(table, rivals): &(Table, Vec<&'static Rival>)| {
                let case = (table.id, table.title, Threads::Same(table.threads));
                timed::measure(case, METRICS, rivals, table.of, budget, session)
            };
            let cases = tables.iter().map(measure);
            Ok(cases.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect())
        }),
    })
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(crate) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    let table = TABLES.into_iter().find(|table| table.id == case)?;
    let rivals = table.rivals(rivals::all());
    Some((METRICS, rivals.into_iter().map(|rival| rival.name).collect()))
}
