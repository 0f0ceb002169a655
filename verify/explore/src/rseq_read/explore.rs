//! This module's worlds as systems to explore.

use core::marker::PhantomData;

use super::fault::{FAULTS, Mutant};
use super::scenario::{Scenario, scenarios};
use super::world::{Move, Plan, World};
use crate::choice::Choice;
use crate::explore::{self, Model, Verdict};
use crate::harness::{Fault, World as Harnessed};
use crate::memory::Memory;
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::system::{Outcome, System};

/// Explores every state of a scenario, at most `limit` of them.
pub fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
    // Views count what each CPU has touched, so there are as many states as disturbances.
    let disturbances_max = (model == Model::Weak).then_some(scenario.aborts_max);
    let plan = Plan { disturbances_max, ..scenario.plan(mutant) };
    match model {
        Model::Tso => explore::run(&Cpus::<Tso>::new(plan), limit),
        Model::Weak => explore::run(&Cpus::<Weak>::new(plan), limit),
    }
}

struct Cpus<M> {
    plan: Plan,
    moves: Vec<Move>,
    memory: PhantomData<M>,
}

impl<M: Memory> Cpus<M> {
    fn new(plan: Plan) -> Self {
        Self { moves: Move::all(&plan), plan, memory: PhantomData }
    }
}

impl<M: Memory> System for Cpus<M> {
    type State = World<M>;

    fn first(&self) -> World<M> {
        World::new(&self.plan)
    }

    fn steps(&self) -> u16 {
        self.moves.len() as u16
    }

    fn can(&self, state: &World<M>, step: u16) -> bool {
        state.can(self.moves[usize::from(step)], &self.plan)
    }

    fn take(
        &self,
        state: &mut World<M>,
        step: u16,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        state.take(self.moves[usize::from(step)], &self.plan, choice, told)
    }

    fn is_end(&self, state: &World<M>) -> bool {
        state.is_end(&self.plan)
    }

    fn fault(&self, end: &World<M>) -> Option<String> {
        end.fault(&self.plan)
    }

    /// Signals need not come.
    fn is_due(&self, step: u16) -> bool {
        !matches!(self.moves[usize::from(step)], Move::Signal(_))
    }
}

/// Restartable sequences, as a world.
#[derive(Clone, Copy, Debug)]
pub struct Restart;

impl Harnessed for Restart {
    type Mutant = Mutant;
    type Scenario = Scenario;

    const FAULTS: &'static [Fault<Mutant>] = FAULTS;

    fn scenarios() -> Vec<Scenario> {
        scenarios()
    }

    fn scenario_name(scenario: &Scenario) -> &str {
        scenario.name
    }

    fn mutant_name(mutant: Mutant) -> String {
        mutant.name()
    }

    fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
        explore(scenario, model, mutant, limit)
    }
}
