//! What the worlds share: a scenario under a memory with a step left out.

use core::marker::PhantomData;

use crate::choice::Choice;
use crate::explore::{self, Model, Verdict};
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::system::{By, System};

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
