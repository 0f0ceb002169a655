//! What the runs of a sweep share, which is said once, and what tells them apart.

use std::fmt::Display;

use bench::units;

use crate::distinct::distinct;
use crate::output::{self, Output};

/// So many runs still stand side by side, each in a column of its own.
const COLUMNS_MAX: usize = 4;

/// A table's worth of figures: its title, and of each figure the name and how it is written.
pub(super) type Group = (&'static str, Vec<(&'static str, String)>);

/// A setting's name, its value in words, and how both together read in a sentence.
pub(super) type Setting = (String, String, String);

/// A setting whose value says what it is: `dbench`.
pub(super) fn plain(name: &str, value: &str) -> Setting {
    (name.to_owned(), value.to_owned(), value.to_owned())
}

/// So many of something: `4 CPUs`.
pub(super) fn count(unit: &str, count: u64) -> Setting {
    (unit.to_owned(), count.to_string(), format!("{} {unit}", units::count(count)))
}

/// A setting with its name: `seed 1`.
pub(super) fn named(name: &str, value: impl Display) -> Setting {
    (name.to_owned(), value.to_string(), format!("{name} {value}"))
}

/// One that is on or off, and what it is called then.
pub(super) fn switch(name: &str, is_on: bool, [on, off]: [&str; 2]) -> Setting {
    let (value, words) = if is_on { ("on", on) } else { ("off", off) };
    (name.to_owned(), value.to_owned(), words.to_owned())
}

/// What all runs share, and what tells them apart.
#[derive(Clone, Debug)]
pub(super) struct Shape {
    /// Names of what varies, in the order of the columns.
    pub(super) varies: Vec<String>,
    /// The rest, in words.
    pub(super) shared: Vec<String>,
}

impl Shape {
    /// Of these runs' settings.
    pub(super) fn of(all: &[Vec<Setting>]) -> Self {
        let mut shape = Self { varies: Vec::new(), shared: Vec::new() };
        for name in distinct(all.iter().flatten().map(|(name, ..)| name)) {
            let values: Vec<Option<&Setting>> =
                all.iter().map(|settings| settings.iter().find(|(own, ..)| own == name)).collect();
            match values[0] {
                Some((_, _, words)) if values.iter().all(|value| *value == values[0]) => {
                    shape.shared.push(words.clone());
                }
                _ => shape.varies.push(name.clone()),
            }
        }
        shape
    }

    /// What varies of these settings, in words: `4 CPUs, poll`; where nothing does, the last.
    pub(super) fn words(&self, settings: &[Setting]) -> String {
        let varies = |(name, ..): &Setting| self.varies.contains(name);
        let last = settings.last().filter(|_| self.varies.is_empty());
        let told = settings.iter().filter(|setting| varies(setting)).chain(last);
        told.map(|(_, _, words)| &**words).collect::<Vec<_>>().join(", ")
    }

    /// The values of what varies.
    pub(super) fn values(&self, settings: &[Setting]) -> Vec<String> {
        let value = |name: &String| {
            let found = settings.iter().find(|(own, ..)| own == name);
            found.map_or("–".to_owned(), |(_, value, _)| value.clone())
        };
        self.varies.iter().map(value).collect()
    }

    /// Prints a table for each group of these runs' figures: a column for each run if there are
    /// few, else a line.
    pub(super) fn print(&self, runs: &[(Vec<Setting>, Vec<Group>)], output: &mut Output) {
        let groups = runs.first().map_or(&[][..], |(_, groups)| groups);
        for (number, (title, figures)) in groups.iter().enumerate() {
            let names = || figures.iter().map(|(name, _)| (*name).to_owned());
            let cells = |groups: &[Group]| -> Vec<String> {
                groups[number].1.iter().map(|(_, cell)| cell.clone()).collect()
            };
            output.heading(title);
            output.table(if runs.len() <= COLUMNS_MAX {
                let heads = runs.iter().map(|(settings, _)| self.words(settings));
                let header: Vec<_> = std::iter::once(String::new()).chain(heads).collect();
                let columns: Vec<_> = runs.iter().map(|(_, groups)| cells(groups)).collect();
                let row = |(place, name): (usize, String)| {
                    let cells = columns.iter().map(|column| column[place].clone());
                    std::iter::once(name).chain(cells).collect::<Vec<_>>()
                };
                output::table(&header, 1.., names().enumerate().map(row))
            } else {
                let header: Vec<_> = self.varies.iter().cloned().chain(names()).collect();
                let row = |(settings, groups): &(Vec<Setting>, Vec<Group>)| {
                    [self.values(settings), cells(groups)].concat()
                };
                output::table(&header, self.varies.len().., runs.iter().map(row))
            });
        }
    }
}
