//! Bounded memory as a system to explore, and as a world.

use super::fault::Mutant;
use super::scenario::Scenario;
use super::world::World;
use crate::explore::{self, Model};
use crate::harness;
use crate::memory::tso::Tso;
use crate::program::Program;
use crate::system::{By, Outcome, System};

/// Its memory is the world's own.
type Limits = Program<Tso, Scenario, Mutant>;

impl System for Limits {
    type State = World;

    fn first(&self) -> World {
        World::new(&self.scenario)
    }

    /// One of each client, and one of the worker.
    fn steps(&self) -> u16 {
        self.scenario.clients.len() as u16 + 1
    }

    fn take(&self, world: &mut World, step: u16, by: By<'_>) -> Outcome {
        let me = usize::from(step);
        let mut turn = self.turn(me, by);
        let is_worker = me == world.worker();
        turn.tell(|| if is_worker { "worker".into() } else { format!("thread {me}") });
        world.take(&mut turn)
    }

    fn is_end(&self, world: &World) -> bool {
        world.is_end()
    }

    fn fault(&self, end: &World) -> Option<String> {
        end.fault()
    }
}

harness::world! {
    /// Bounded memory, as a world.
    Limited of "limit";
    explore: |scenario, _, mutant, limit| {
        explore::run(&Limits::new(scenario.clone(), mutant), limit)
    };

    const MODELS: &'static [Model] = &[Model::Tso];
    const PREFIX: &'static str = "limit-";
}
