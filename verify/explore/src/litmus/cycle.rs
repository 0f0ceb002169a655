//! Cycles of grace periods and sections, all of them up to a size.
//!
//! Each thread of a cycle makes two accesses, with a grace period between them or a section around
//! them. The second access of each thread and the first of the next one are to the same variable,
//! and the outcome asked about is that the one came *before* the other, all the way round: it did
//! not see the other's store ([`Edge::FromRead`]), the other saw its store ([`Edge::ReadsFrom`]),
//! or the other's store replaced its own ([`Edge::Coherence`]). The names are those of Alglave,
//! Maranget and Tautschnig (Herding Cats, TOPLAS 2014).
//!
//! **The rule** (Alglave, Maranget, McKenney, Parri, Stern, ASPLOS 2018): that cannot happen
//! exactly when there are at least as many grace periods as sections.

use super::section::{Reader, Shape, grace_period};
use crate::scenario::Op::{Get, Set};
use crate::scenario::{Op, Outcome, Scenario};

/// One thread of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A grace period between the accesses.
    GracePeriod,
    /// A section around them.
    Section,
}

/// How the last access of a thread came before the first one of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Edge {
    /// It is a load that returned what was there before the other's store.
    FromRead,
    /// It is a store whose value the other's load returned.
    ReadsFrom,
    /// It is a store that the other's store replaced.
    Coherence,
}

/// Threads, each with the edge that leads to the next one; the last one's leads to the first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Cycle {
    pub(super) links: Vec<(Kind, Edge)>,
}

const KINDS: [Kind; 2] = [Kind::GracePeriod, Kind::Section];
const EDGES: [Edge; 3] = [Edge::FromRead, Edge::ReadsFrom, Edge::Coherence];
const NAMES: [&str; 4] = ["a", "b", "c", "d"];

impl Cycle {
    /// Every cycle of that many threads (2 to 4), but for turns of another one.
    pub fn all(threads: u32) -> Vec<Self> {
        let choices = KINDS.len() * EDGES.len();
        let nth = |index: usize| (KINDS[index % KINDS.len()], EDGES[index / KINDS.len()]);
        let mut all = Vec::new();
        for number in 0..choices.pow(threads) {
            let digits: Vec<usize> =
                (0..threads).map(|place| number / choices.pow(place) % choices).collect();
            let is_smallest =
                (1..digits.len()).all(|turn| [&digits[turn..], &digits[..turn]].concat() >= digits);
            if is_smallest {
                all.push(Self { links: digits.into_iter().map(nth).collect() });
            }
        }
        all
    }

    /// The cycle of these threads in which no thread sees the next one's store.
    pub fn unseen(kinds: &[Kind]) -> Self {
        Self { links: kinds.iter().map(|kind| (*kind, Edge::FromRead)).collect() }
    }

    fn count(&self, wanted: Kind) -> usize {
        self.links.iter().filter(|(kind, _)| *kind == wanted).count()
    }

    /// Whether the rule forbids it.
    pub fn is_forbidden(&self) -> bool {
        self.count(Kind::GracePeriod) >= self.count(Kind::Section)
    }

    /// The accesses of a thread, and what they must have returned.
    fn accesses(&self, index: usize) -> ([Op; 2], Vec<Outcome>) {
        let count = self.links.len();
        let before = self.links[(index + count - 1) % count].1;
        let (here, next) = (index as u8, ((index + 1) % count) as u8);
        let mut outcome = Vec::new();
        let mut load = |variable, value| {
            outcome.push(Outcome { thread: index, variable, value });
            Get(variable)
        };
        let first = match before {
            Edge::FromRead => Set(here, 1),
            Edge::ReadsFrom => load(here, 1),
            Edge::Coherence => Set(here, 2),
        };
        let second = match self.links[index].1 {
            Edge::FromRead => load(next, 0),
            Edge::ReadsFrom | Edge::Coherence => Set(next, 1),
        };
        ([first, second], outcome)
    }

    /// The litmus test of this cycle for a kind of reader; every section has the same shape.
    pub fn scenario(&self, reader: Reader, shape: Shape) -> Scenario {
        let mut threads = Vec::new();
        let (mut outcome, mut finally) = (Vec::new(), Vec::new());
        for (index, (kind, edge)) in self.links.iter().enumerate() {
            let ([first, second], returned) = self.accesses(index);
            let mut thread = match kind {
                Kind::GracePeriod => grace_period("", first, second),
                Kind::Section => reader.section(shape, first, second),
            };
            thread.name = NAMES[index];
            threads.push(thread);
            outcome.extend(returned);
            if *edge == Edge::Coherence {
                finally.push((((index + 1) % self.links.len()) as u8, 2));
            }
        }
        let name = format!("litmus{self}-{}-{}", shape.name(), reader.name());
        let scenario = reader.scenario(name, threads);
        Scenario { outcome, finally, ..scenario }
    }
}

impl core::fmt::Display for Cycle {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.links.iter().try_for_each(|(kind, edge)| {
            let kind = match kind {
                Kind::GracePeriod => "gp",
                Kind::Section => "section",
            };
            let edge = match edge {
                Edge::FromRead => "fr",
                Edge::ReadsFrom => "rf",
                Edge::Coherence => "co",
            };
            write!(f, "-{kind}-{edge}")
        })
    }
}
