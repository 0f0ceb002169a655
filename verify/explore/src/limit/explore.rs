//! This module's worlds as systems to explore.

use super::fault::{FAULTS, Mutant};
use super::scenario::{Scenario, scenarios};
use super::world::{Turn, World};
use crate::choice::Choice;
use crate::explore::{self, Model, Verdict};
use crate::harness::{Fault, World as Harnessed};
use crate::system::{Outcome, System};

/// Explores every state of a scenario, at most `limit` of them.
pub fn explore(scenario: &Scenario, mutant: Option<Mutant>, limit: usize) -> Verdict {
    explore::run(&Threads { scenario, mutant }, limit)
}

struct Threads<'a> {
    scenario: &'a Scenario,
    mutant: Option<Mutant>,
}

impl System for Threads<'_> {
    type State = World;

    fn first(&self) -> World {
        World::new(self.scenario)
    }

    /// One of each client, and one of the worker.
    fn steps(&self) -> u16 {
        self.scenario.clients.len() as u16 + 1
    }

    fn take(
        &self,
        state: &mut World,
        step: u16,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        let me = usize::from(step);
        let mut text = told.is_some().then(String::new);
        let (scenario, mutant) = (self.scenario, self.mutant);
        let outcome = state.take(&mut Turn { me, scenario, mutant, choice, told: text.as_mut() });
        if let (Some(told), Some(text)) = (told, text) {
            let who = if me == state.worker() { "worker".into() } else { format!("thread {me}") };
            *told = format!("{who}: {text}");
        }
        outcome
    }

    fn is_end(&self, state: &World) -> bool {
        state.is_end()
    }

    fn fault(&self, end: &World) -> Option<String> {
        end.fault()
    }
}

/// Bounded memory, as a world.
#[derive(Clone, Copy, Debug)]
pub struct Limited;

impl Harnessed for Limited {
    type Mutant = Mutant;
    type Scenario = Scenario;

    const MODELS: &'static [Model] = &[Model::Tso];
    const FAULTS: &'static [Fault<Mutant>] = FAULTS;
    const PREFIX: &'static str = "limit-";

    fn scenarios() -> Vec<Scenario> {
        scenarios()
    }

    fn scenario_name(scenario: &Scenario) -> &str {
        scenario.name
    }

    fn explore(
        scenario: &Scenario,
        _sequentially_consistent: Model,
        mutant: Option<Mutant>,
        limit: usize,
    ) -> Verdict {
        explore(scenario, mutant, limit)
    }
}
