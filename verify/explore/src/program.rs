//! What the worlds share: a scenario under a memory with a step left out, and the threads that take
//! it.

use core::hash::Hash;
use core::marker::PhantomData;
use core::sync::atomic::Ordering;

use crate::choice::Choice;
use crate::explore::{self, Model, Verdict};
use crate::memory::Memory;
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::system::{By, Outcome, System};

/// A scenario under a memory, with a step left out or weakened.
pub(crate) struct Program<M, S, X> {
    pub(crate) scenario: S,
    pub(crate) mutant: Option<X>,
    memory: PhantomData<M>,
}

impl<M, S, X: Copy + PartialEq> Program<M, S, X> {
    pub(crate) const fn new(scenario: S, mutant: Option<X>) -> Self {
        Self { scenario, mutant, memory: PhantomData }
    }

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

    /// A step of `me`.
    pub(crate) fn turn<'a>(&'a self, me: usize, by: By<'a>) -> Turn<'a, S, X> {
        let By { choice, told } = by;
        Turn { scenario: &self.scenario, mutant: self.mutant, me, choice, told }
    }
}

/// Explores every state of a scenario under a model, at most `limit` of them.
pub(crate) fn explore<S, X>(scenario: S, model: Model, mutant: Option<X>, limit: usize) -> Verdict
where
    X: Copy + PartialEq,
    Program<Tso, S, X>: System,
    Program<Weak, S, X>: System,
{
    match model {
        Model::Tso => explore::run(&Program::<Tso, S, X>::new(scenario, mutant), limit),
        Model::Weak => explore::run(&Program::<Weak, S, X>::new(scenario, mutant), limit),
    }
}

/// A step being taken.
pub(crate) struct Turn<'a, S, X> {
    pub(crate) scenario: &'a S,
    pub(crate) mutant: Option<X>,
    pub(crate) me: usize,
    pub(crate) choice: &'a mut Choice,
    /// Whose step it is and what it did, if somebody wants to read it.
    told: Option<&'a mut String>,
}

impl<S, X: Copy + PartialEq> Turn<'_, S, X> {
    pub(crate) fn is(&self, mutant: X) -> bool {
        self.mutant == Some(mutant)
    }

    pub(crate) fn tell(&mut self, what: impl FnOnce() -> String) {
        if let Some(told) = &mut self.told {
            if !told.is_empty() {
                told.push_str(if told.contains(": ") { "; " } else { ": " });
            }
            told.push_str(&what());
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

    fn take(&self, world: &mut T::World, step: u16, by: By<'_>) -> Outcome {
        let (me, is_drain) = (usize::from(step / 2), step % 2 == 1);
        let outcome =
            if is_drain { drain(T::memory(world), me) } else { self.step(world, me, by.choice) };
        let active = self.active(world);
        T::memory(world).settle(active);
        if let Some(told) = by.told {
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
