//! What the small worlds share: a scenario under a memory with a step left out, and the threads
//! that take it.

use core::hash::Hash;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::choice::Choice;
use crate::explore::{self, Model, Verdict};
use crate::memory::Memory;
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::system::{Outcome, System};

/// A scenario under a memory, with a step left out or weakened.
pub(crate) struct Program<M, S, X> {
    pub(crate) scenario: S,
    pub(crate) mutant: Option<X>,
    memory: PhantomData<M>,
}

impl<M, S, X: Copy + PartialEq> Program<M, S, X> {
    pub(crate) fn is(&self, mutant: X) -> bool {
        self.mutant == Some(mutant)
    }

    /// The order, or a relaxed one where that is the mutant.
    pub(crate) fn unless(&self, mutant: X, order: Ordering) -> Ordering {
        self.unless_one_of(&[mutant], order)
    }

    pub(crate) fn unless_one_of(&self, mutants: &[X], order: Ordering) -> Ordering {
        let is_weakened = mutants.iter().any(|mutant| self.is(*mutant));
        if is_weakened { Ordering::Relaxed } else { order }
    }
}

/// Explores every state of a scenario under a model, at most `limit` of them.
pub(crate) fn explore<S, X>(scenario: S, model: Model, mutant: Option<X>, limit: usize) -> Verdict
where
    Program<Tso, S, X>: System,
    Program<Weak, S, X>: System,
{
    match model {
        Model::Tso => {
            explore::run(&Program { scenario, mutant, memory: PhantomData::<Tso> }, limit)
        }
        Model::Weak => {
            explore::run(&Program { scenario, mutant, memory: PhantomData::<Weak> }, limit)
        }
    }
}

/// Threads of which each takes a step, or has its oldest buffered store seen.
pub(crate) trait Threads {
    type Memory: Memory;
    type World: Clone + Hash;

    /// What they are called.
    const NAMES: &'static [&'static str];

    /// The state at the beginning.
    fn first(&self) -> Self::World;

    fn memory(world: &mut Self::World) -> &mut Self::Memory;

    /// The next step of thread `me`.
    fn step(&self, world: &mut Self::World, me: usize, choice: &mut Choice) -> Outcome;

    /// The threads that may do something yet, as a set.
    fn active(&self, world: &Self::World) -> u8;

    /// Where all of them stand.
    fn tell(&self, world: &Self::World) -> String;

    /// Whether nothing need happen any more.
    fn is_end(&self, world: &Self::World) -> bool {
        self.active(world) == 0
    }

    /// What is wrong with an end, if anything is.
    fn fault(&self, end: &Self::World) -> Option<String> {
        let _ = end;
        None
    }
}

impl<T: Threads> System for T {
    type State = T::World;

    fn first(&self) -> T::World {
        Threads::first(self)
    }

    /// One of each thread, and one of each thread's memory.
    fn steps(&self) -> u16 {
        2 * T::NAMES.len() as u16
    }

    fn take(
        &self,
        world: &mut T::World,
        step: u16,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        let (me, is_drain) = (usize::from(step / 2), step % 2 == 1);
        let outcome =
            if is_drain { drain(T::memory(world), me) } else { self.step(world, me, choice) };
        let active = self.active(world);
        T::memory(world).settle(active);
        if let Some(told) = told {
            *told = format!("{}{}: {}", T::NAMES[me], seen(is_drain), self.tell(world));
        }
        outcome
    }

    fn is_end(&self, world: &T::World) -> bool {
        Threads::is_end(self, world)
    }

    fn fault(&self, end: &T::World) -> Option<String> {
        Threads::fault(self, end)
    }
}

/// The oldest buffered store of a thread becomes visible.
pub(crate) fn drain(memory: &mut impl Memory, me: usize) -> Outcome {
    memory.drain(me).map_or(Outcome::Blocked, |_| Outcome::Moved)
}

/// What a trace adds to the name of a thread.
pub(crate) fn seen(is_drain: bool) -> &'static str {
    if is_drain { " (its store is seen)" } else { "" }
}
