//! Every state of a scenario, breadth first: as [`crate::explore`], over this module's world.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

use super::fault::Mutant;
use super::scenario::Scenario;
use super::world::{Move, Outcome, Turn, World};
use crate::choice::Choice;
use crate::explore::{Model, Verdict};
use crate::memory::Memory;
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;

/// Explores every state of a scenario, at most `limit` of them.
pub fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
    match model {
        Model::Tso => Explorer::<Tso>::new(scenario, mutant, limit).run(),
        Model::Weak => Explorer::<Weak>::new(scenario, mutant, limit).run(),
    }
}

/// How a state was reached first.
struct Origin {
    from: u32,
    step: Move,
    answers: Box<[u8]>,
}

struct Explorer<'a, M> {
    scenario: &'a Scenario,
    mutant: Option<Mutant>,
    limit: usize,
    states: HashMap<u128, u32>,
    origins: Vec<Origin>,
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
    open: VecDeque<(u32, World<M>)>,
}

/// Two independent hashes: that two of some millions of states share both has a chance below 10^-24.
fn fingerprint(state: &impl Hash) -> u128 {
    let mut low = DefaultHasher::new();
    state.hash(&mut low);
    let mut high = low.clone();
    0xA5u8.hash(&mut high);
    (u128::from(high.finish()) << 64) | u128::from(low.finish())
}

impl<'a, M: Memory> Explorer<'a, M> {
    fn new(scenario: &'a Scenario, mutant: Option<Mutant>, limit: usize) -> Self {
        Self {
            scenario,
            mutant,
            limit,
            states: HashMap::new(),
            origins: Vec::new(),
            edges: Vec::new(),
            ends: Vec::new(),
            open: VecDeque::new(),
        }
    }

    fn run(mut self) -> Verdict {
        let first = World::<M>::new(self.scenario, self.mutant);
        self.visit(first, Origin { from: 0, step: Move::Worker, answers: Box::default() });
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

    fn expand(&mut self, index: u32, world: &World<M>) -> Option<Verdict> {
        if world.is_end() {
            self.ends.push(index);
        }
        for step in world.moves() {
            let mut choice = Some(Choice::default());
            while let Some(mut answers) = choice {
                let mut next = world.clone();
                let outcome = self.take(&mut next, step, &mut answers, None);
                let origin = Origin { from: index, step, answers: answers.answers() };
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

    fn take(
        &self,
        world: &mut World<M>,
        step: Move,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        let (scenario, mutant) = (self.scenario, self.mutant);
        world.take(step, &mut Turn { scenario, mutant, choice, told })
    }

    fn visit(&mut self, world: World<M>, origin: Origin) {
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
    fn trace(&self, index: u32, last: Option<Origin>) -> Vec<String> {
        let mut steps = Vec::new();
        let mut at = index;
        while at != 0 {
            steps.push(&self.origins[at as usize]);
            at = self.origins[at as usize].from;
        }
        steps.reverse();
        steps.extend(&last);
        let mut world = World::<M>::new(self.scenario, self.mutant);
        let mut trace = Vec::new();
        for step in steps {
            let mut told = String::new();
            let mut choice = Choice::replay(&step.answers);
            self.take(&mut world, step.step, &mut choice, Some(&mut told));
            trace.push(told);
        }
        trace
    }
}
