//! Every state of a system, breadth first: as [`crate::explore`], over this module's worlds.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::alone::{Alone, Asked};
use super::fault::Mutant;
use super::scenario::Scenario;
use super::world::{Setup, World};
use crate::choice::Choice;
use crate::explore::{Model, Verdict};
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;

/// What came of a step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    Moved,
    /// Not possible now; the state is not looked at.
    Blocked,
    Violation(String),
}

/// What can be explored: states, and the steps that lead from one to the next.
pub(super) trait System: Clone + Hash {
    /// What does not change.
    type Setup;
    /// Whose step it is.
    type Step: Copy;

    fn new(setup: &Self::Setup) -> Self;
    /// All steps that may be possible.
    fn steps(&self) -> Vec<Self::Step>;
    /// Takes one; `told` is given what it did.
    fn take(
        &mut self,
        step: Self::Step,
        setup: &Self::Setup,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome;
    /// Whether all is done.
    fn is_end(&self) -> bool;
}

/// Explores every state of a scenario, at most `limit` of them.
pub fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
    let setup = Setup { scenario: scenario.clone(), mutant };
    match model {
        Model::Tso => Explorer::<World<Tso>>::new(&setup, limit).run(),
        Model::Weak => Explorer::<World<Weak>>::new(&setup, limit).run(),
    }
}

/// Explores the machine by itself: every order of requests, ticks and answers within what is `asked`.
pub fn explore_alone(asked: &Asked, limit: usize) -> Verdict {
    Explorer::<Alone>::new(asked, limit).run()
}

/// How a state was reached first.
struct Origin<Step> {
    from: u32,
    /// `None` for the first state, which nothing led to.
    step: Option<Step>,
    answers: Box<[u8]>,
}

struct Explorer<'a, T: System> {
    setup: &'a T::Setup,
    limit: usize,
    states: HashMap<u128, u32>,
    origins: Vec<Origin<T::Step>>,
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
    open: VecDeque<(u32, T)>,
}

/// Two independent hashes: that two of some millions of states share both has a chance below 10^-24.
fn fingerprint(state: &impl Hash) -> u128 {
    let mut low = DefaultHasher::new();
    state.hash(&mut low);
    let mut high = low.clone();
    0xA5u8.hash(&mut high);
    (u128::from(high.finish()) << 64) | u128::from(low.finish())
}

impl<'a, T: System> Explorer<'a, T> {
    fn new(setup: &'a T::Setup, limit: usize) -> Self {
        Self {
            setup,
            limit,
            states: HashMap::new(),
            origins: Vec::new(),
            edges: Vec::new(),
            ends: Vec::new(),
            open: VecDeque::new(),
        }
    }

    fn run(mut self) -> Verdict {
        let first = T::new(self.setup);
        self.visit(first, Origin { from: 0, step: None, answers: Box::default() });
        while let Some((index, world)) = self.open.pop_front() {
            if let Some(verdict) = self.expand(index, &world) {
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

    fn expand(&mut self, index: u32, world: &T) -> Option<Verdict> {
        if world.is_end() {
            self.ends.push(index);
        }
        for step in world.steps() {
            let mut choice = Some(Choice::default());
            while let Some(mut answers) = choice {
                let mut next = world.clone();
                let outcome = next.take(step, self.setup, &mut answers, None);
                let origin = Origin { from: index, step: Some(step), answers: answers.answers() };
                match outcome {
                    Outcome::Blocked => break,
                    Outcome::Moved => self.visit(next, origin),
                    Outcome::Violation(what) => {
                        let trace = self.trace(index, Some(origin));
                        return Some(Verdict::Violation { what, trace });
                    }
                }
                choice = answers.next();
            }
        }
        None
    }

    fn visit(&mut self, world: T, origin: Origin<T::Step>) {
        let fresh = self.states.len() as u32;
        let from = origin.from;
        let index = *self.states.entry(fingerprint(&world)).or_insert(fresh);
        if index == fresh {
            self.origins.push(origin);
            self.open.push_back((index, world));
        }
        self.edges.push((from, index));
    }

    /// The first state found from which no end can be reached: going back from the ends does not meet
    /// it. A state without any step is such a one, unless it is an end.
    fn hopeless(&self) -> Option<u32> {
        let count = self.states.len();
        let mut sources = vec![Vec::new(); count];
        self.edges.iter().for_each(|(from, to)| sources[*to as usize].push(*from));
        let mut hopeful = vec![false; count];
        let mut open = self.ends.clone();
        self.ends.iter().for_each(|end| hopeful[*end as usize] = true);
        while let Some(index) = open.pop() {
            for source in &sources[index as usize] {
                if !core::mem::replace(&mut hopeful[*source as usize], true) {
                    open.push(*source);
                }
            }
        }
        hopeful.iter().position(|hopeful| !hopeful).map(|index| index as u32)
    }

    /// Replays the steps that lead to a state, and one more.
    fn trace(&self, index: u32, last: Option<Origin<T::Step>>) -> Vec<String> {
        let mut steps = Vec::new();
        let mut at = index;
        while at != 0 {
            steps.push(&self.origins[at as usize]);
            at = self.origins[at as usize].from;
        }
        steps.reverse();
        steps.extend(&last);
        let mut world = T::new(self.setup);
        let mut trace = Vec::new();
        for origin in steps {
            let Some(step) = origin.step else { continue };
            let mut told = String::new();
            let mut choice = Choice::replay(&origin.answers);
            world.take(step, self.setup, &mut choice, Some(&mut told));
            trace.push(told);
        }
        trace
    }
}
