//! Engines and workloads, which are chosen by name, and their parameters, which are set by name.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde::de::value::{Error, MapDeserializer, StrDeserializer};

use crate::setup::Impossible;

/// A number with a name, a range and a meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize)]
pub struct Parameter {
    /// Its name, the unit last.
    pub name: &'static str,
    /// What it is now.
    pub value: u64,
    /// The least it can be.
    pub min: u64,
    /// The most it can be.
    pub max: u64,
    /// What it is, in a line.
    pub what: &'static str,
}

/// One of what there is to choose from, and its numbers.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Choice<K> {
    pub(crate) kind: K,
    name: &'static str,
    what: &'static str,
    parameters: Vec<Parameter>,
}

/// What there is to choose from.
pub trait Kind: Copy + DeserializeOwned + 'static {
    /// What one of them is called.
    const CALLED: &'static str;

    /// Every one as it is by default.
    fn all() -> &'static [Choice<Self>];
}

/// Name, value, least, most, meaning.
type Number = (String, u64, u64, u64, String);

/// A table of choices, as it is written.
#[derive(Deserialize)]
struct Table {
    /// Groups of numbers.
    numbers: BTreeMap<String, Vec<Number>>,
    #[serde(rename = "choice")]
    choices: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    name: String,
    what: String,
    /// Its groups of numbers.
    #[serde(default)]
    numbers: Vec<String>,
    /// Those of its numbers that are other than usual.
    #[serde(default)]
    other: BTreeMap<String, u64>,
}

/// Reads a table of choices, which is part of the program.
///
/// # Panics
/// If it is not as it should be.
pub(crate) fn read<K: Kind>(text: &str) -> Vec<Choice<K>> {
    let table: Table = toml::from_str(text).unwrap_or_else(|error| panic!("{error}"));
    let leak = |text: &String| -> &'static str { text.clone().leak() };
    let choice = |row: &Row| {
        let kind = K::deserialize(StrDeserializer::<Error>::new(&row.name));
        let numbers = row.numbers.iter().flat_map(|group| &table.numbers[group]);
        let parameter = |(name, value, min, max, what): &Number| {
            let value = *row.other.get(name).unwrap_or(value);
            Parameter { name: leak(name), value, min: *min, max: *max, what: leak(what) }
        };
        Choice {
            kind: kind.unwrap_or_else(|error| panic!("{error}")),
            name: leak(&row.name),
            what: leak(&row.what),
            parameters: numbers.map(parameter).collect(),
        }
    };
    table.choices.iter().map(choice).collect()
}

impl<K: Kind> Choice<K> {
    /// Every one as it is by default.
    pub fn all() -> Vec<Self> {
        K::all().to_vec()
    }

    /// The names of all.
    pub fn names() -> Vec<&'static str> {
        K::all().iter().map(|choice| choice.name).collect()
    }

    /// The one of this name, as it is by default.
    ///
    /// # Errors
    /// If there is none: the reason lists those there are.
    pub fn named(name: &str) -> Result<Self, Impossible> {
        K::all().iter().find(|choice| choice.name == name).cloned().ok_or_else(|| {
            let names = Self::names().join(", ");
            Impossible(format!("no {} is called {name}; there are {names}", K::CALLED))
        })
    }

    /// Its name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// What it is, in a line.
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// The numbers that can be changed.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Changes a number.
    ///
    /// # Errors
    /// If there is none of this name (the reason lists those there are), or the value is out of
    /// its range.
    pub fn set(&mut self, name: &str, value: u64) -> Result<(), Impossible> {
        let of = self.name;
        let known = self.parameters.iter().map(|parameter| parameter.name);
        let known = known.collect::<Vec<_>>().join(", ");
        let Some(found) = self.parameters.iter_mut().find(|parameter| parameter.name == name)
        else {
            let others = match known.as_str() {
                "" => ", nor any other".to_owned(),
                _ => format!("; it has {known}"),
            };
            return Err(Impossible(format!("{of} has no parameter {name}{others}")));
        };
        let Parameter { min, max, .. } = *found;
        if !(min..=max).contains(&value) {
            return Err(Impossible(format!("{name} = {value}: {of} takes {min} to {max}")));
        }
        found.value = value;
        Ok(())
    }

    /// All values: fields of these names.
    pub(crate) fn numbers<T: DeserializeOwned>(&self) -> T {
        let numbers = self.parameters.iter().map(|each| (each.name, each.value));
        T::deserialize(MapDeserializer::<_, Error>::new(numbers))
            .unwrap_or_else(|error| unreachable!("{error}"))
    }

    /// The value of one that is there: the tables and their users are written side by side.
    pub(crate) fn get(&self, name: &str) -> u64 {
        let found = self.parameters.iter().find(|parameter| parameter.name == name);
        found.unwrap_or_else(|| unreachable!("no parameter {name} in the table")).value
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EngineKind, Workload};

    fn check<K: Kind + PartialEq + std::fmt::Debug>(unknown: &str, known: &str) {
        assert!(K::all().len() >= 10);
        for choice in K::all() {
            assert_eq!(Choice::named(choice.name).as_ref(), Ok(choice));
            let names = choice.parameters.iter().map(|each| each.name);
            let names: std::collections::BTreeSet<_> = names.collect();
            assert_eq!(names.len(), choice.parameters.len(), "{}", choice.name);
            for each in &choice.parameters {
                assert!((each.min..=each.max).contains(&each.value), "{}", each.name);
            }
        }
        let refused = Choice::<K>::named(unknown).unwrap_err().to_string();
        assert!(refused.contains(known), "{refused}");
    }

    #[test]
    fn each_engine_and_workload_is_found_by_its_name_and_has_each_number_once() {
        check::<crate::engines::Kind>("steam", "poll, poll-per-cpu, tick");
        check::<crate::workload::Kind>("coffee", "dbench, dcachebench");
    }

    #[test]
    fn unknown_names_and_values_out_of_range_are_refused() {
        let mut v0 = EngineKind::named("tree-v0").unwrap();
        assert_eq!(v0.set("period", 1 << 31), Ok(()));
        assert_eq!(v0.get("period"), 1 << 31);
        let refused = v0.set("period", 0).unwrap_err().to_string();
        assert_eq!(refused, "period = 0: tree-v0 takes 1 to 2147483648");
        let refused = Workload::named("idle").unwrap().set("perdio", 1).unwrap_err().to_string();
        let own = "kernel_percent, section_us, bytes, wake_every_us";
        assert_eq!(refused, format!("idle has no parameter perdio; it has {own}"));
        let refused = EngineKind::named("poll").unwrap().set("period", 1).unwrap_err().to_string();
        assert_eq!(refused, "poll has no parameter period, nor any other");
    }
}
