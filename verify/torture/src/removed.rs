//! The steps that torture must notice, out of the library's registry: the proof that it would.

use quiescence::PerCpuPath;
use quiescence::chaos::{self, Mutant};

use crate::screen::Failure;
use crate::themes::Theme;

/// A removed step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Removed {
    mutant: Mutant,
    /// What notices that it is missing.
    pub(crate) theme: Theme,
    /// How the process must count for the step to be taken at all.
    pub(crate) per_cpu: Option<PerCpuPath>,
}

/// The names, in the order of the registry.
pub(crate) fn names() -> impl Iterator<Item = &'static str> {
    Mutant::ALL.iter().filter(|mutant| mutant.torture().is_some()).map(|mutant| mutant.name())
}

/// The step with this name, in a build that has the hooks.
pub(crate) fn by_name(name: &str) -> Result<Removed, Failure> {
    let removed = Mutant::by_name(name).and_then(Removed::new).ok_or_else(|| {
        let known = names().collect::<Vec<_>>().join(", ");
        Failure::Usage(format!("there is no mutant {name:?}; there are: {known}"))
    })?;
    if chaos::HAS_HOOKS {
        return Ok(removed);
    }
    let build = chaos::BUILD;
    Err(Failure::Usage(format!(
        "this program tortures the library as it is, and no step of it can be removed; {name} can \
         be with: {build} run --release -p quiescence-torture -- --mutant {name}"
    )))
}

impl Removed {
    fn new(mutant: Mutant) -> Option<Self> {
        let (theme, per_cpu) = mutant.torture()?;
        let per_cpu = per_cpu.map(|path| match path {
            "portable" => PerCpuPath::Portable,
            _ => PerCpuPath::Restartable,
        });
        Some(Self { mutant, theme: Theme::named(theme)?, per_cpu })
    }

    pub(crate) fn name(self) -> &'static str {
        self.mutant.name()
    }

    /// Removes the step for the rest of the process.
    pub(crate) fn remove(self) {
        #[cfg(quiescence_mutants)]
        assert!(chaos::remove_step(self.mutant), "one step is removed in a process");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_registry_names_themes() {
        for mutant in Mutant::ALL.iter().filter(|mutant| mutant.torture().is_some()) {
            assert!(Removed::new(*mutant).is_some(), "{mutant:?}");
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
