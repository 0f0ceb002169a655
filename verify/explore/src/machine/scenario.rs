//! Which threads run a program, and where: the scenarios of `worlds`; and steps that are left out.

use std::collections::BTreeMap;

use grace::srcu::{AdaptiveDelay, AnyDelay, Published};
use serde::Deserialize;

use super::assemble::assemble;
use crate::explore::{Model, Verdict};
use crate::program;

/// A step of a program that is left out or weakened, or something that a kernel does not do: its
/// name, that of the registry if the step is one of the code, too. In the texts it has no prefix.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(transparent)]
pub struct Mutant(pub &'static str);

impl core::fmt::Debug for Mutant {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.0)
    }
}

/// Which threads run a program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// The text in `worlds/programs`.
    pub program: &'static str,
    /// Conditions of the text that hold.
    pub holds: Vec<&'static str>,
    /// Constants that are not what the text says.
    pub numbers: BTreeMap<&'static str, u64>,
    /// Lines for which the text has a place.
    pub lines: BTreeMap<&'static str, Vec<&'static str>>,
    /// The threads of each role.
    pub threads: BTreeMap<&'static str, Vec<Seat>>,
    /// CPUs on which threads move about: none, one or two. The others have their own.
    pub cpus: usize,
    /// Page faults in touches of objects, at most.
    pub faults: u8,
    /// What the worker of SRCU does between its runs.
    pub delay: Delay,
}

/// Where a thread is, and how often it does what it does.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Seat {
    /// How often it does it.
    pub rounds: u8,
    /// The CPU at the start.
    pub cpu: u8,
    /// Whether it is preempted and migrates.
    pub moves: bool,
    /// How often it migrates beside what else runs there, without being preempted.
    pub migrations: u8,
    /// It serves others, and while it sleeps all may be over.
    pub serves: bool,
}

impl Default for Seat {
    fn default() -> Self {
        Self { rounds: 1, cpu: 0, moves: false, migrations: 0, serves: false }
    }
}

/// What the worker of SRCU does between its runs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delay {
    /// It never waits.
    #[default]
    Spins,
    /// It waits after the first run, with counts.
    Counts,
    /// It naps; few lengths of naps are as good as many.
    Naps,
}

impl Delay {
    pub(super) const fn function(self) -> AnyDelay {
        match self {
            Self::Spins => AnyDelay::Published(Published::V5_18),
            Self::Counts => AnyDelay::Published(Published::V5_19_RC1),
            Self::Naps => AnyDelay::Adaptive(AdaptiveDelay {
                nap_us: 1_000,
                wait_jiffies_max: 1,
                ..AdaptiveDelay::at(1_000)
            }),
        }
    }
}

/// Explores every state of a scenario, at most `limit` of them. Names of mutants begin with
/// `prefix`, unless the registry calls them otherwise.
pub(crate) fn explore(
    prefix: &str,
    scenario: &Scenario,
    model: Model,
    mutant: Option<Mutant>,
    limit: usize,
) -> Verdict {
    let mutant = mutant.map_or("", |Mutant(name)| name.strip_prefix(prefix).unwrap_or(name));
    let mut plan = assemble(scenario, mutant);
    // Views count what each CPU has touched, so there are as many states as disturbances.
    let disturbances_max = scenario.numbers.get("aborts-max").map_or(1, |most| *most as u8);
    plan.disturbances_max = (model == Model::Weak).then_some(disturbances_max);
    program::explore(plan, model, Some(mutant), limit)
}
