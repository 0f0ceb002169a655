//! What the worlds share: a scenario under a memory with a step left out.

use core::marker::PhantomData;

use crate::choice::Choice;
use crate::explore::{self, Model, Verdict};
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::system::{By, System};

/// A scenario under a memory, with a step left out or weakened.
pub(crate) struct Program<M, S> {
    pub(crate) scenario: S,
    /// The step's name, as the transcriptions have it; empty if none is left out.
    pub(crate) mutant: &'static str,
    memory: PhantomData<M>,
}

impl<M, S> Program<M, S> {
    pub(crate) const fn new(scenario: S, mutant: &'static str) -> Self {
        Self { scenario, mutant, memory: PhantomData }
    }

    /// A step of `me`.
    pub(crate) fn turn<'a>(&'a self, me: usize, by: By<'a>) -> Turn<'a, S> {
        let By { choice, told } = by;
        Turn { scenario: &self.scenario, mutant: self.mutant, me, choice, told }
    }
}

/// Explores every state of a scenario under a model, at most `limit` of them.
pub(crate) fn explore<S>(scenario: S, model: Model, mutant: &'static str, limit: usize) -> Verdict
where
    Program<Tso, S>: System,
    Program<Weak, S>: System,
{
    match model {
        Model::Tso => explore::run(&Program::<Tso, S>::new(scenario, mutant), limit),
        Model::Weak => explore::run(&Program::<Weak, S>::new(scenario, mutant), limit),
    }
}

/// A step being taken.
pub(crate) struct Turn<'a, S> {
    pub(crate) scenario: &'a S,
    pub(crate) mutant: &'static str,
    pub(crate) me: usize,
    pub(crate) choice: &'a mut Choice,
    /// Whose step it is and what it did, if somebody wants to read it.
    told: Option<&'a mut String>,
}

impl<S> Turn<'_, S> {
    pub(crate) fn is(&self, mutant: &str) -> bool {
        self.mutant == mutant
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
