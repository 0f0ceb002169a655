//! Which threads run a program, and where: the scenarios of `worlds`; and steps that are left out.

use std::collections::BTreeMap;

use grace::srcu::{AdaptiveDelay, AnyDelay, Published};
use serde::Deserialize;

use super::assemble::assemble;
use crate::explore::{Model, Verdict};
use crate::harness::{Explored, Table, World};
use crate::program;

/// Which threads run a program.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Scenario {
    /// Its name.
    pub(crate) name: &'static str,
    /// The text in `worlds/programs`.
    pub(super) program: &'static str,
    /// Conditions of the text that hold.
    pub(crate) holds: Vec<&'static str>,
    /// Constants that are not what the text says.
    pub(super) numbers: BTreeMap<&'static str, u64>,
    /// Lines for which the text has a place.
    pub(super) lines: BTreeMap<&'static str, Vec<&'static str>>,
    /// The threads of each role.
    pub(super) threads: BTreeMap<&'static str, Vec<Seat>>,
    /// CPUs on which threads move about: none, one or two. The others have their own.
    pub(super) cpus: usize,
    /// Page faults in touches of objects, at most.
    pub(super) faults: u8,
    /// What the worker of SRCU does between its runs.
    pub(super) delay: Delay,
    /// What names of mutants begin with in its world, unless the registry calls them otherwise. In
    /// the texts they have no prefix.
    #[serde(skip)]
    pub(super) prefix: &'static str,
}

/// Where a thread is, and how often it does what it does.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Seat {
    /// How often it does it.
    pub(super) rounds: u8,
    /// The CPU at the start.
    pub(super) cpu: u8,
    /// Whether it is preempted and migrates.
    pub(super) moves: bool,
    /// How often it migrates beside what else runs there, without being preempted.
    pub(super) migrations: u8,
    /// It serves others, and while it sleeps all may be over.
    pub(super) serves: bool,
}

impl Default for Seat {
    fn default() -> Self {
        Self { rounds: 1, cpu: 0, moves: false, migrations: 0, serves: false }
    }
}

/// What the worker of SRCU does between its runs.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Delay {
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

impl Explored for Scenario {
    fn name(&self) -> &str {
        self.name
    }

    fn explore(&self, model: Model, mutant: Option<&'static str>, limit: usize) -> Verdict {
        let mutant = mutant.map_or("", |name| name.strip_prefix(self.prefix).unwrap_or(name));
        let mut plan = assemble(self, mutant);
        // Views count what each CPU has touched, so there are as many states as disturbances.
        let disturbances_max = self.numbers.get("aborts-max").map_or(1, |most| *most as u8);
        plan.disturbances_max = (model == Model::Weak).then_some(disturbances_max);
        program::explore(plan, model, mutant, limit)
    }
}

/// A world whose scenarios run programs.
pub(crate) fn world(prefix: &'static str, mut table: Table<Scenario>) -> World {
    let all = table.scenario.iter_mut().chain(&mut table.big);
    all.for_each(|scenario| scenario.prefix = prefix);
    World::new(&Model::ALL, table)
}
