//! The exploration: every state that any interleaving reaches, breadth first.
//!
//! A state is identified by a 128-bit fingerprint; that two of some millions share one has a chance
//! below 10^-24. Breadth first, so that the trace of a violation is a shortest one. Traces are not
//! kept: each state remembers which step led to it, and the steps are replayed.
//!
//! A state from which no step is possible, though a thread is not done, is *stuck*. So is one from
//! which no end can be reached any more, however the steps fall: found by going back from the ends.

use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::BuildHasherDefault;

use crate::choice::Choice;
use crate::fingerprint::{self, Lanes};
use crate::system::{By, Outcome, System};

/// A model of shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Model {
    /// Total store order: x86.
    Tso,
    /// Views: loads and stores of different locations are reordered too.
    Weak,
}

impl Model {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Tso, Self::Weak];
}

/// What an exploration found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Every reachable state is fine, and an end can be reached from each.
    Safe {
        /// How many states there are.
        states: usize,
    },
    /// A promise is broken, or the outcome of a litmus test is reached.
    Violation {
        /// What is broken.
        what: String,
        /// The steps that lead there, a shortest way.
        trace: Vec<String>,
    },
    /// A state from which no end can be reached.
    Stuck {
        /// The steps that lead there.
        trace: Vec<String>,
    },
    /// There are more states than the limit.
    LimitReached,
}

impl Verdict {
    /// Whether nothing was found and everything was looked at.
    pub fn is_safe(&self) -> bool {
        matches!(self, Self::Safe { .. })
    }
}

impl core::fmt::Display for Verdict {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let (what, trace) = match self {
            Self::Safe { states } => return write!(f, "safe, {states} states"),
            Self::LimitReached => return write!(f, "more states than the limit"),
            Self::Violation { what, trace } => (what.as_str(), trace),
            Self::Stuck { trace } => ("stuck: no end can be reached", trace),
        };
        write!(f, "{what}, after {} steps", trace.len())?;
        trace
            .iter()
            .enumerate()
            .try_for_each(|(index, step)| write!(f, "\n  {:3} {step}", index + 1))
    }
}

/// Explores every state of a system, at most `limit` of them.
pub(crate) fn run(system: &impl System, limit: usize) -> Verdict {
    let (states, origins, open) = (HashMap::default(), Vec::new(), VecDeque::new());
    let (edges, ends) = (Vec::new(), Vec::new());
    Explorer { system, limit, states, origins, edges, ends, open }.run()
}

/// How a state was reached first.
#[derive(Debug)]
struct Origin {
    from: u32,
    step: u16,
    answers: Box<[u8]>,
}

struct Explorer<'a, S: System> {
    system: &'a S,
    limit: usize,
    states: HashMap<u128, u32, BuildHasherDefault<Lanes>>,
    origins: Vec<Origin>,
    /// Steps that are due, by the states that they connect.
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
    open: VecDeque<(u32, S::State)>,
}

impl<S: System> Explorer<'_, S> {
    fn run(mut self) -> Verdict {
        self.visit(self.system.first(), Origin { from: 0, step: 0, answers: Box::default() });
        while let Some((index, state)) = self.open.pop_front() {
            if let Some(verdict) = self.expand(index, &state) {
                return verdict;
            }
            if self.states.len() > self.limit {
                return Verdict::LimitReached;
            }
        }
        match self.hopeless() {
            Some(index) => Verdict::Stuck { trace: self.trace(index, None) },
            None => Verdict::Safe { states: self.states.len() },
        }
    }

    /// Takes every step that is possible in a state.
    fn expand(&mut self, index: u32, state: &S::State) -> Option<Verdict> {
        let is_end = self.system.is_end(state);
        if is_end {
            if let Some(what) = self.system.fault(state) {
                return Some(Verdict::Violation { what, trace: self.trace(index, None) });
            }
            self.ends.push(index);
        }
        let mut moved = false;
        // What a step that is not possible has left as it was.
        let mut spare = None;
        for step in 0..self.system.steps() {
            if !self.system.can(state, step) {
                continue;
            }
            let mut choice = Some(Choice::default());
            while let Some(mut answers) = choice {
                let mut next = spare.take().unwrap_or_else(|| state.clone());
                let outcome =
                    self.system.take(&mut next, step, By { choice: &mut answers, told: None });
                let origin = Origin { from: index, step, answers: answers.answers() };
                match outcome {
                    Outcome::Blocked => {
                        spare = Some(next);
                        break;
                    }
                    Outcome::Moved => self.visit(next, origin),
                    Outcome::Violation(what) => {
                        let trace = self.trace(index, Some(origin));
                        return Some(Verdict::Violation { what, trace });
                    }
                }
                moved = true;
                choice = answers.next();
            }
        }
        let stuck = !moved && !is_end;
        stuck.then(|| Verdict::Stuck { trace: self.trace(index, None) })
    }

    fn visit(&mut self, state: S::State, origin: Origin) {
        let fresh = self.states.len() as u32;
        let (from, step) = (origin.from, origin.step);
        let index = *self.states.entry(fingerprint::of(&state)).or_insert(fresh);
        if index == fresh {
            self.origins.push(origin);
            self.open.push_back((index, state));
        }
        if self.system.is_due(step) {
            self.edges.push((from, index));
        }
    }

    /// A state from which no end is reachable: the first one found, so the nearest to the start.
    fn hopeless(&self) -> Option<u32> {
        let count = self.states.len();
        // The edges by their target: `starts[t]..starts[t + 1]` in `sources`.
        let mut starts = vec![0u32; count + 1];
        self.edges.iter().for_each(|(_, to)| starts[*to as usize + 1] += 1);
        (0..count).for_each(|index| starts[index + 1] += starts[index]);
        let mut next = starts.clone();
        let mut sources = vec![0u32; self.edges.len()];
        for (from, to) in &self.edges {
            sources[next[*to as usize] as usize] = *from;
            next[*to as usize] += 1;
        }
        let mut hopeful = vec![false; count];
        let mut open = self.ends.clone();
        self.ends.iter().for_each(|end| hopeful[*end as usize] = true);
        while let Some(index) = open.pop() {
            let (start, end) = (starts[index as usize], starts[index as usize + 1]);
            for source in &sources[start as usize..end as usize] {
                if !core::mem::replace(&mut hopeful[*source as usize], true) {
                    open.push(*source);
                }
            }
        }
        hopeful.iter().position(|hopeful| !hopeful).map(|index| index as u32)
    }

    /// Replays the steps that lead to a state, and one more.
    fn trace(&self, index: u32, last: Option<Origin>) -> Vec<String> {
        let mut steps = Vec::new();
        let mut at = index;
        while at != 0 {
            steps.push(&self.origins[at as usize]);
            at = self.origins[at as usize].from;
        }
        steps.reverse();
        steps.extend(&last);
        let mut state = self.system.first();
        let mut trace = Vec::new();
        for step in steps {
            let mut told = String::new();
            let mut choice = Choice::replay(&step.answers);
            let by = By { choice: &mut choice, told: Some(&mut told) };
            self.system.take(&mut state, step.step, by);
            trace.push(told);
        }
        trace
    }
}
