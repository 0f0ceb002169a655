//! The exploration: every state that any interleaving reaches, breadth first.
//!
//! A state is told apart by a 128-bit fingerprint; that two of some millions share one has a chance
//! below 10^-24. Breadth first, so that the trace of a violation is a shortest one. Traces are not
//! kept: each state remembers which step led to it, and the steps are replayed.
//!
//! A state from which no step is possible, though a thread is not done, is *stuck*. So is one from
//! which no end can be reached any more, however the steps fall: found by going back from the ends.

use core::hash::{Hash, Hasher};
use std::collections::HashMap;
use std::collections::VecDeque;
use std::hash::{BuildHasherDefault, DefaultHasher};

use crate::choice::Choice;
use crate::memory::Memory;
use crate::memory::tso::Tso;
use crate::memory::weak::Weak;
use crate::mutant::Mutant;
use crate::scenario::Scenario;
use crate::world::{Outcome, Setup, Turn, World};

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

    /// Whether a fault was found.
    pub fn is_fault(&self) -> bool {
        matches!(self, Self::Violation { .. } | Self::Stuck { .. })
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

/// Explores every state of a scenario, at most `limit` of them.
pub fn explore(scenario: &Scenario, model: Model, mutant: Option<Mutant>, limit: usize) -> Verdict {
    let setup =
        Setup { scenario: mutant.map_or(scenario.clone(), |m| m.rewrite(scenario)), mutant };
    match model {
        Model::Tso => Explorer::<Tso>::new(&setup, limit).run(),
        Model::Weak => Explorer::<Weak>::new(&setup, limit).run(),
    }
}

/// What kind of step it is.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Own,
    Drain,
    Vanish,
}

/// How a state was reached first.
#[derive(Debug)]
struct Origin {
    from: u32,
    thread: u8,
    kind: Kind,
    answers: Box<[u8]>,
}

/// A fingerprint is as good as random already.
#[derive(Default)]
struct Identity(u64);

impl Hasher for Identity {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 << 8) | u64::from(*byte);
        }
    }

    fn write_u128(&mut self, fingerprint: u128) {
        self.0 = fingerprint as u64;
    }
}

type States = HashMap<u128, u32, BuildHasherDefault<Identity>>;

fn fingerprint(state: &impl Hash) -> u128 {
    let mut low = DefaultHasher::new();
    state.hash(&mut low);
    let mut high = low.clone();
    0xA5u8.hash(&mut high); // another end of the same input: a second, independent answer
    (u128::from(high.finish()) << 64) | u128::from(low.finish())
}

struct Explorer<'a, M> {
    setup: &'a Setup,
    limit: usize,
    states: States,
    origins: Vec<Origin>,
    edges: Vec<(u32, u32)>,
    ends: Vec<u32>,
    open: VecDeque<(u32, World<M>)>,
}

impl<'a, M: Memory> Explorer<'a, M> {
    fn new(setup: &'a Setup, limit: usize) -> Self {
        Self {
            setup,
            limit,
            states: States::default(),
            origins: Vec::new(),
            edges: Vec::new(),
            ends: Vec::new(),
            open: VecDeque::new(),
        }
    }

    fn run(mut self) -> Verdict {
        let first = World::<M>::new(self.setup);
        self.visit(first, Origin { from: 0, thread: 0, kind: Kind::Own, answers: Box::default() });
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

    /// Takes every step that is possible in a state.
    fn expand(&mut self, index: u32, world: &World<M>) -> Option<Verdict> {
        if world.is_end(self.setup) {
            if world.is_outcome(self.setup) {
                let what = "the outcome is reached".to_owned();
                return Some(Verdict::Violation { what, trace: self.trace(index, None) });
            }
            self.ends.push(index);
        }
        let mut moved = false;
        for thread in 0..self.setup.scenario.threads.len() as u8 {
            for kind in [Kind::Own, Kind::Drain, Kind::Vanish] {
                let mut choice = Some(Choice::default());
                while let Some(mut answers) = choice {
                    let mut next = world.clone();
                    let outcome = self.take(&mut next, thread, kind, &mut answers, None);
                    let origin = Origin { from: index, thread, kind, answers: answers.answers() };
                    match outcome {
                        Outcome::Blocked => break,
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
        }
        let stuck = !moved && !world.is_end(self.setup);
        stuck.then(|| Verdict::Stuck { trace: self.trace(index, None) })
    }

    fn take(
        &self,
        world: &mut World<M>,
        thread: u8,
        kind: Kind,
        choice: &mut Choice,
        told: Option<&mut String>,
    ) -> Outcome {
        let mut turn = Turn { setup: self.setup, me: usize::from(thread), choice, told };
        match kind {
            Kind::Own => world.step(&mut turn),
            Kind::Drain => world.drain(&mut turn),
            Kind::Vanish => world.vanish(&mut turn),
        }
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
        let mut world = World::<M>::new(self.setup);
        let mut trace = Vec::new();
        for step in steps {
            let mut told = String::new();
            let mut choice = Choice::replay(&step.answers);
            self.take(&mut world, step.thread, step.kind, &mut choice, Some(&mut told));
            let name = self.setup.scenario.threads[usize::from(step.thread)].name;
            trace.push(format!("{name}: {told}"));
        }
        trace
    }
}
