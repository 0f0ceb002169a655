//! What can be explored: states that are values, and steps from one to the next.

use core::hash::Hash;

use crate::choice::Choice;

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Moved,
    /// Not possible now; the state has not changed.
    Blocked,
    Violation(String),
}

/// How a step goes, where it may go several ways.
pub(crate) struct By<'a> {
    pub(crate) choice: &'a mut Choice,
    /// What it did, if somebody wants to read it.
    pub(crate) told: Option<&'a mut String>,
}

/// Something whose states are to be explored. Steps have numbers; what a step does depends on
/// nothing but the state and the values of [`Choice`].
pub(crate) trait System {
    type State: Clone + Hash;

    /// The state at the beginning.
    fn first(&self) -> Self::State;

    /// How many steps there are; each is tried in each state.
    fn steps(&self) -> u16;

    /// Whether a step may be possible, as far as that is cheap to say.
    fn can(&self, state: &Self::State, step: u16) -> bool {
        let _ = (state, step);
        true
    }

    /// Takes a step.
    fn take(&self, state: &mut Self::State, step: u16, by: By<'_>) -> Outcome;

    /// Whether nothing need happen any more. An end may be gone on from.
    fn is_end(&self, state: &Self::State) -> bool;

    /// What is wrong with an end, if anything is.
    fn fault(&self, end: &Self::State) -> Option<String> {
        let _ = end;
        None
    }

    /// Whether the step happens sooner or later as long as it is possible. From every state an end
    /// must be reachable by such steps alone.
    fn is_due(&self, step: u16) -> bool {
        let _ = step;
        true
    }
}
