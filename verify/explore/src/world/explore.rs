//! Grace periods as a system to explore.

use super::{Setup, Threads};
use crate::explore::{Model, Verdict, run};
use crate::harness::{Fault, World as Harnessed};
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::mutant::{MUTANTS, Mutant};
use crate::scenario::Scenario;
use crate::scenarios;

/// Explores every state of a scenario, at most `limit` of them.
pub fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
    let setup =
        Setup { scenario: mutant.map_or(scenario.clone(), |m| m.rewrite(scenario)), mutant };
    match model {
        Model::Tso => run(&Threads::<Tso>::new(setup), limit),
        Model::Weak => run(&Threads::<Weak>::new(setup), limit),
    }
}

/// Grace periods, as a world.
#[derive(Clone, Copy, Debug)]
pub struct GracePeriods;

impl Harnessed for GracePeriods {
    type Mutant = Mutant;
    type Scenario = Scenario;

    const FAULTS: &'static [Fault<Mutant>] = MUTANTS;

    fn scenarios() -> Vec<Scenario> {
        scenarios::quick()
    }

    fn scenario_name(scenario: &Scenario) -> &str {
        &scenario.name
    }

    fn mutant_name(mutant: Mutant) -> String {
        mutant.name().to_owned()
    }

    fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
        explore(scenario, model, mutant, limit)
    }
}
