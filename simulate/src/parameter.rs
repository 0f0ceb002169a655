//! Numbers of engines and workloads that can be changed by name.

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

/// Shorthand for the tables of them.
pub(crate) const fn parameter(
    name: &'static str,
    value: u64,
    (min, max): (u64, u64),
    what: &'static str,
) -> Parameter {
    Parameter { name, value, min, max, what }
}

/// The one of this name among `all`, which are called `what`.
///
/// # Errors
/// If there is none: the reason lists those there are.
pub(crate) fn named<T>(
    what: &str,
    all: Vec<T>,
    name: &str,
    name_of: impl Fn(&T) -> &'static str,
) -> Result<T, Impossible> {
    let names: Vec<_> = all.iter().map(&name_of).collect();
    all.into_iter().find(|one| name_of(one) == name).ok_or_else(|| {
        Impossible(format!("no {what} is called {name}; there are {}", names.join(", ")))
    })
}

/// Changes the one of this name.
///
/// # Errors
/// If there is none of this name (the reason lists those there are), or the value is out of range.
pub(crate) fn set(
    of: &str,
    parameters: &mut [Parameter],
    name: &str,
    value: u64,
) -> Result<(), Impossible> {
    let Some(found) = parameters.iter_mut().find(|parameter| parameter.name == name) else {
        let known: Vec<_> = parameters.iter().map(|parameter| parameter.name).collect();
        return Err(Impossible(if known.is_empty() {
            format!("{of} has no parameter {name}, nor any other")
        } else {
            format!("{of} has no parameter {name}; it has {}", known.join(", "))
        }));
    };
    if !(found.min..=found.max).contains(&value) {
        return Err(Impossible(format!(
            "{name} = {value}: {of} takes {} to {}",
            found.min, found.max
        )));
    }
    found.value = value;
    Ok(())
}

/// The value of one, if there is one of this name.
pub(crate) fn find(parameters: &[Parameter], name: &str) -> Option<u64> {
    parameters.iter().find(|parameter| parameter.name == name).map(|parameter| parameter.value)
}

/// The value of one that is there: the tables and their users are written side by side.
pub(crate) fn get(parameters: &[Parameter], name: &str) -> u64 {
    match find(parameters, name) {
        Some(value) => value,
        None => unreachable!("no parameter {name} in the table"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_and_values_out_of_range_are_refused() {
        let mut table = [parameter("period", 256, (1, 1_000), "calls between quiescent states")];
        assert_eq!(set("v0", &mut table, "period", 1_000), Ok(()));
        assert_eq!(get(&table, "period"), 1_000);
        let refused = set("v0", &mut table, "period", 0).unwrap_err().to_string();
        assert_eq!(refused, "period = 0: v0 takes 1 to 1000");
        let refused = set("v0", &mut table, "perdio", 1).unwrap_err().to_string();
        assert_eq!(refused, "v0 has no parameter perdio; it has period");
        let refused = set("poll", &mut [], "period", 1).unwrap_err().to_string();
        assert_eq!(refused, "poll has no parameter period, nor any other");
    }
}
