//! This module's worlds as systems to explore.

use core::marker::PhantomData;

use super::alone::{Alone, Asked};
use super::fault::{FAULTS, Mutant};
use super::scenario::{Scenario, scenarios};
use super::world::{Move, Setup, World};
use crate::choice::Choice;
use crate::explore::{self, Model, Verdict};
use crate::harness::{Fault, World as Harnessed};
use crate::memory::Memory;
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::system::{Outcome, System};

/// Explores every state of a scenario, at most `limit` of them.
pub fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
    let setup = Setup { scenario: scenario.clone(), mutant };
    match model {
        Model::Tso => explore::run(&SrcuCounts::<Tso>::new(setup), limit),
        Model::Weak => explore::run(&SrcuCounts::<Weak>::new(setup), limit),
    }
}

/// Explores the machine by itself: every order of requests, ticks and events within what is
/// `asked`.
pub fn explore_alone(asked: &Asked, limit: usize) -> Verdict {
    explore::run(&ByItself(asked), limit)
}

/// The machine with its counts, CPUs and readers.
struct SrcuCounts<M> {
    setup: Setup,
    moves: Vec<Move>,
    memory: PhantomData<M>,
}

impl<M: Memory> SrcuCounts<M> {
    fn new(setup: Setup) -> Self {
        Self { moves: Move::all(&setup), setup, memory: PhantomData }
    }
}

impl<M: Memory> System for SrcuCounts<M> {
    type State = World<M>;

    fn first(&self) -> World<M> {
        World::new(&self.setup)
    }

    fn steps(&self) -> u16 {
        self.moves.len() as u16
    }

    fn take(
        &self,
        state: &mut World<M>,
        step: u16,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        state.take(self.moves[usize::from(step)], &self.setup, choice, told)
    }

    fn is_end(&self, state: &World<M>) -> bool {
        state.is_end()
    }
}

/// The machine, and what drives it.
struct ByItself<'a>(&'a Asked);

impl System for ByItself<'_> {
    type State = Alone;

    fn first(&self) -> Alone {
        Alone::new(self.0)
    }

    fn steps(&self) -> u16 {
        Alone::STEPS.len() as u16
    }

    fn take(
        &self,
        state: &mut Alone,
        step: u16,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        state.take(Alone::STEPS[usize::from(step)], choice, told)
    }

    fn is_end(&self, state: &Alone) -> bool {
        state.is_end()
    }
}

/// SRCU, as a world.
#[derive(Clone, Copy, Debug)]
pub struct SrcuProtocol;

impl Harnessed for SrcuProtocol {
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
