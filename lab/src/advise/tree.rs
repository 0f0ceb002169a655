//! Which counter, and which kind of reference: the decision trees of `bench/designs.toml`.
//!
//! A tree asks what something is for before it asks what is fast. Most questions are flags; the
//! path through the tree is printed beside the ranking, with what was measured of each of its
//! leaves, and whether the measurement agrees.

use bench::advise::{Leaf, Need, Tree};
use bench::units;
use serde::Serialize;

use super::rank::{Place, best};
use super::verdict::listed;
use crate::workload::Workload;

/// Reads or updates that are at least this share of the operations, in per cent, are frequent: a
/// sum of many words then costs more than its cheap additions save.
const FREQUENT_PERCENT: f64 = 10.0;

/// Bytes of a value that readers copy, at most.
const COPIED_BYTES: u32 = 64;

/// A question, and what the workload says to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Step {
    pub(super) question: &'static str,
    pub(super) answer: String,
}

/// A path through the tree.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Path {
    pub(super) steps: Vec<Step>,
    /// The design at the leaf.
    pub(super) design: &'static str,
    pub(super) because: &'static str,
    #[serde(skip)]
    tree: &'static Tree,
    #[serde(skip)]
    asks_more_than_speed: bool,
}

/// What the workload says, and which option says it.
fn answer(workload: &Workload, need: Need) -> (bool, &'static str) {
    match need {
        Need::Limit => (workload.limit.is_some(), "--limit"),
        Need::Exact => (workload.exact, "--exact"),
        Need::Often => (workload.reads_percent >= FREQUENT_PERCENT, "--reads"),
        Need::Replaced => (100.0 - workload.reads_percent >= FREQUENT_PERCENT, "--reads"),
        Need::Migrates => (workload.migrates, "--migrates"),
        Need::Blocks => (workload.blocks, "--blocks"),
        Need::Copied => (workload.value_bytes <= COPIED_BYTES, "--value-bytes"),
        Need::Zero => (workload.zero, "--zero"),
        Need::Together => (workload.together, "--together"),
        Need::Pinned => (workload.pinned, "--pinned"),
        Need::Big => (workload.big, "--big"),
    }
}

/// The path of a kind that has a tree.
pub(super) fn path(workload: &Workload) -> Option<Path> {
    let tree = bench::advise::tree(&workload.kind.name())?;
    let (design, leaf, path) = tree.walk(|need| answer(workload, need).0);
    let steps = path.into_iter().map(|(question, is_so)| {
        let (_, option) = answer(workload, question.need);
        let answer = format!("{} ({option})", if is_so { "yes" } else { "no" });
        Step { question: question.ask, answer }
    });
    Some(Path {
        steps: steps.collect(),
        design,
        because: leaf.because,
        tree,
        asks_more_than_speed: workload.asks_more_than_speed(),
    })
}

impl Path {
    /// The path in words, and what the ranking says of its leaf.
    pub(super) fn paragraphs(&self, places: &[Place]) -> Vec<String> {
        let steps = self.steps.iter().map(|step| format!("{} {}", step.question, step.answer));
        let steps: Vec<String> = steps.collect();
        vec![
            format!(
                "The decision tree (after {}): {}. Its leaf is {}: {}.",
                self.tree.source,
                steps.join("; "),
                self.design,
                self.because
            ),
            self.measured(places),
            self.leaves(places),
        ]
    }

    /// What is known of every leaf of the tree.
    fn leaves(&self, places: &[Place]) -> String {
        let of = |(name, leaf): (&&str, &Leaf)| {
            let place = places.iter().find(|place| place.design.name == *name);
            let behind = place.map(|place| units::figures(place.best_is_faster.median));
            format!("{name} ({})", behind.as_deref().or(leaf.elsewhere).unwrap_or("not measured"))
        };
        let leaves: Vec<String> = self.tree.leaves.iter().map(of).collect();
        format!(
            "Its leaves, each with how many times slower it is than the first of this ranking, \
             or with how to measure it: {}.",
            listed(&leaves)
        )
    }

    fn measured(&self, places: &[Place]) -> String {
        let leaf = places.iter().find(|place| place.design.name == self.design);
        let (Some(leaf), Some(first)) = (leaf, best(places)) else {
            let elsewhere = self.tree.leaves[self.design].elsewhere;
            let elsewhere = elsewhere.map_or_else(String::new, |by| format!(": {by}"));
            return format!("{} was not measured{elsewhere}.", self.design);
        };
        if self.asks_more_than_speed {
            return format!(
                "Not every design of the ranking does what these options ask for. Take the leaf; \
                 the first of the ranking, {}, is {} times as fast.",
                first.design.name,
                units::figures(leaf.best_is_faster.median)
            );
        }
        if leaf.standing.is_in_set() {
            return "The measurement agrees with the tree.".to_owned();
        }
        format!(
            "The measurement disagrees here: {} is {} times as fast. The tree has machines in mind \
             on which a line that all CPUs write is dear: with more threads on more CPUs its leaf \
             gains.",
            first.design.name,
            units::figures(leaf.best_is_faster.median)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::rank;
    use crate::workload::Kind;
    use bench::advise::designs;

    fn counter(limit: Option<u32>, exact: bool, reads_percent: f64) -> Workload {
        Workload { kind: Kind::Counter, limit, exact, reads_percent, ..Workload::built_in() }
    }

    #[test]
    fn each_leaf_is_a_design_that_can_do_it_and_each_question_is_asked_once() {
        let reference = |blocks, migrates, value_bytes, reads_percent| {
            let kind = Kind::Reference;
            Workload { kind, blocks, migrates, value_bytes, ..counter(None, false, reads_percent) }
        };
        let exact = |workload| Workload { exact: true, ..workload };
        let limited = |reads_percent| counter(Some(9), false, reads_percent);
        let cases = [
            (counter(None, false, 1.0), "quiescence-counter", 6),
            (counter(None, true, 1.0), "quiescence-exact", 5),
            (limited(1.0), "quiescence-limit", 3),
            (counter(Some(9), true, 1.0), "quiescence-limit", 3),
            (Workload { migrates: true, ..limited(1.0) }, "atomic-shared", 3),
            (counter(None, false, 50.0), "atomic-shared", 5),
            (limited(50.0), "atomic-shared", 2),
            (reference(false, false, 4096, 99.0), "quiescence", 3),
            (reference(false, false, 64, 99.0), "quiescence-snapshot", 4),
            (reference(false, false, 64, 50.0), "quiescence-seqlock", 4),
            (reference(true, false, 64, 99.0), "quiescence-arc-cell", 3),
            (reference(true, true, 64, 99.0), "quiescence-srcu", 4),
            (exact(reference(true, true, 64, 99.0)), "quiescence-exact-cell", 1),
        ];
        for (workload, leaf, questions) in cases {
            let path = path(&workload).expect("it has a tree");
            assert_eq!((path.design, path.steps.len()), (leaf, questions), "{workload:?}");
            let can = designs(workload.measured()).iter().any(|design| design.name == leaf);
            assert!(can, "{leaf} cannot do {workload:?}");
        }
        let plain = || counter(None, false, 1.0);
        let told = [
            (Workload { zero: true, ..plain() }, "BigRef", "rcu bench percpu --case bigref"),
            (Workload { together: true, ..plain() }, "quiescence-seqlock", "--case snapshot"),
            (Workload { pinned: true, ..plain() }, "thread-local", "the feature all-rivals"),
            (Workload { big: true, ..reference(true, true, 64, 99.0) }, "BigRef", "--case bigref"),
        ];
        for (workload, leaf, elsewhere) in told {
            let path = path(&workload).expect("it has a tree");
            let measured = path.paragraphs(&[]).swap_remove(1);
            assert!(path.design == leaf && measured.contains(elsewhere), "{measured}");
            let last = path.steps.last().map(|step| &*step.answer);
            assert!(last.is_some_and(|last| last.starts_with("yes (--")), "{workload:?}");
        }
        assert!(path(&Workload { kind: Kind::Table, ..plain() }).is_none());
    }

    #[test]
    fn whether_the_measurement_agrees_is_said() {
        let workload = counter(None, false, 1.0);
        let place = |name, rank| rank::tests::place(name, rank, 1.0);
        let path = path(&workload).unwrap();
        let agrees = path.paragraphs(&[place("quiescence-counter", 1), place("std-mutex", 2)]);
        assert!(agrees[1].contains("agrees"), "{agrees:?}");
        assert!(agrees[0].contains("must a sum be exact? no (--exact); is it"), "{agrees:?}");
        assert!(agrees[2].contains("quiescence-counter (1.00), quiescence-exact (--exact)"));
        let other = path.paragraphs(&[place("std-mutex", 1), place("quiescence-counter", 2)]);
        assert!(other[1].contains("std-mutex is 2.00 times as fast"), "{other:?}");
        assert!(path.paragraphs(&[])[1].contains("was not measured"));
        let workload = Workload { kind: Kind::Reference, blocks: true, ..workload };
        let asks_more = super::path(&workload).unwrap();
        let told = asks_more.paragraphs(&[place("quiescence", 1), place("quiescence-arc-cell", 2)]);
        assert!(
            told[1].contains("Take the leaf; the first of the ranking, quiescence"),
            "{told:?}"
        );
    }
}
