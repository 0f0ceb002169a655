//! What the runs of a sweep share, which is said once, and what tells them apart.

use std::fmt::Display;

use bench::units;

use crate::distinct::distinct;

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

    /// What varies of these settings, in words: `4 CPUs, poll`; where nothing does, `otherwise`.
    pub(super) fn words(&self, settings: Vec<Setting>, otherwise: &str) -> String {
        if self.varies.is_empty() {
            return otherwise.to_owned();
        }
        let varying = settings.into_iter().filter(|(name, ..)| self.varies.contains(name));
        varying.map(|(_, _, words)| words).collect::<Vec<_>>().join(", ")
    }

    /// The values of what varies.
    pub(super) fn values(&self, settings: &[Setting]) -> Vec<String> {
        let value = |name: &String| {
            let found = settings.iter().find(|(own, ..)| own == name);
            found.map_or("–".to_owned(), |(_, value, _)| value.clone())
        };
        self.varies.iter().map(value).collect()
    }
}
