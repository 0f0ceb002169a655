//! The steps that torture must notice, out of the table of all: the proof that it would.

use clap::ValueEnum;
use mutants::Step;
use quiescence::tuning::PerCpuPath;

use crate::screen::Failure;
use crate::themes::Theme;

/// A removed step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removed {
    pub(crate) name: &'static str,
    /// What notices that it is missing.
    pub(crate) theme: Theme,
    /// How the process must count for the step to be taken at all.
    pub(crate) per_cpu: Option<PerCpuPath>,
}

/// The names, in the order of the table.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    mutants::all().iter().filter(|step| step.torture().is_some()).map(|step| step.name.as_str())
}

/// The step with this name, in a build that has the hooks.
pub(crate) fn by_name(name: &str) -> Result<Removed, Failure> {
    let removed = mutants::named(name).and_then(Removed::new).ok_or_else(|| {
        let known = names().collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("there is no mutant {name:?}; there are: {known}"))
    })?;
    if mutants::HAS_HOOKS {
        return Ok(removed);
    }
    Err(Failure::Usage(format!(
        "this program tortures the library as it is, and no step of it can be removed; {name} can \
         be where the repository is, with: cargo xtask mutants --by torture {name}"
    )))
}

impl Removed {
    fn new(step: &'static Step) -> Option<Self> {
        let (theme, per_cpu) = step.torture()?;
        let per_cpu = per_cpu.map(|path| match path {
            "portable" => PerCpuPath::Portable,
            _ => PerCpuPath::Restartable,
        });
        Some(Self { name: &step.name, theme: Theme::from_str(theme, false).ok()?, per_cpu })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_names_themes() {
        for step in mutants::all().iter().filter(|step| step.torture().is_some()) {
            assert!(Removed::new(step).is_some(), "{step:?}");
        }
        assert!(names().count() >= 42);
    }

    #[test]
    fn an_unknown_name_is_told_the_known_ones() {
        let Err(Failure::Usage(message)) = by_name("no-such") else {
            panic!("a usage error is due");
        };
        assert!(message.contains("no-wake-up"));
    }
}
