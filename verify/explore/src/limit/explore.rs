//! Bounded memory as a system to explore, and as a world.

use std::sync::LazyLock;

use super::scenario::Scenario;
use super::world::World;
use crate::explore::{self, Model, Verdict};
use crate::harness::{self, Explored};
use crate::memory::tso::Tso;
use crate::program::Program;
use crate::system::{By, Outcome, System};

/// Its memory is the world's own.
type Limits = Program<Tso, Scenario>;

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

impl Explored for Scenario {
    fn name(&self) -> &str {
        self.name
    }

    fn explore(&self, _: Model, mutant: Option<&'static str>, limit: usize) -> Verdict {
        let mutant = mutant.map_or("", |name| name.strip_prefix("limit-").unwrap_or(name));
        explore::run(&Limits::new(self.clone(), mutant), limit)
    }
}

/// Bounded memory, as a world.
pub static LIMITED: LazyLock<harness::World> =
    LazyLock::new(|| harness::World::new::<Scenario>(&[Model::Tso], harness::table!("limit")));
