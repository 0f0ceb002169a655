//! Which counter, and which kind of reference: the decision trees of `bench/designs.toml`.
//!
//! A tree asks what something is for before it asks what is fast. Most questions are flags; the
//! path through the tree is printed beside the ranking, with what was measured of its leaf, and
//! whether the measurement agrees.

use bench::advise::{Need, Question};
use bench::units;
use serde::Serialize;

use super::decide::Standing;
use super::leaves::LeafFigure;
use super::rank::{Place, best};
use crate::workload::Workload;

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
    source: &'static str,
    #[serde(skip)]
    asks_more_than_speed: bool,
}

/// What the workload says, and which option says it.
fn answer(workload: &Workload, &Question { need, percent, .. }: &Question) -> (bool, &'static str) {
    match need {
        Need::Limit => (workload.limit.is_some(), "--limit"),
        Need::Exact => (workload.exact, "--exact"),
        Need::Often => (workload.reads_percent >= percent, "--reads"),
        Need::Replaced => (workload.reads_percent <= 100.0 - percent, "--reads"),
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
    let (design, leaf, path) = tree.walk(|question| answer(workload, question).0);
    let steps = path.into_iter().map(|(question, is_so)| {
        let (_, option) = answer(workload, question);
        let answer = format!("{} ({option})", if is_so { "yes" } else { "no" });
        Step { question: question.ask, answer }
    });
    Some(Path {
        steps: steps.collect(),
        design,
        because: leaf.because,
        source: tree.source,
        asks_more_than_speed: workload.asks_more_than_speed(),
    })
}

impl Path {
    /// The path in words, and what was measured of its leaf.
    pub(super) fn paragraphs(&self, places: &[Place], leaves: &[LeafFigure]) -> [String; 2] {
        let steps = self.steps.iter().map(|step| format!("{} {}", step.question, step.answer));
        let steps: Vec<String> = steps.collect();
        let path = format!(
            "The decision tree (after {}): {}. Its leaf is {}: {}.",
            self.source,
            steps.join("; "),
            self.design,
            self.because
        );
        [path, self.measured(places, leaves)]
    }

    fn measured(&self, places: &[Place], leaves: &[LeafFigure]) -> String {
        let more = "Not every design of the ranking does what these options ask for. Take the leaf";
        let leaf = places.iter().find(|place| place.design.name == self.design);
        let (Some(leaf), Some(first)) = (leaf, best(places)) else {
            let elsewhere = leaves.iter().find(|one| one.leaf == self.design);
            let elsewhere = elsewhere.map_or_else(String::new, |one| format!(": {one}"));
            let more = if self.asks_more_than_speed { &format!("{more}. ") } else { "" };
            return format!("{more}{} has no place in this ranking{elsewhere}.", self.design);
        };
        let (first, times) = (first.design.name, units::figures(leaf.best_is_faster.median));
        match leaf.standing {
            _ if self.asks_more_than_speed && leaf.is_behind() => {
                format!("{more}; the first of the ranking, {first}, is {times} times as fast.")
            }
            _ if self.asks_more_than_speed => format!("{more}."),
            Standing::In => "The measurement agrees with the tree.".to_owned(),
            _ if leaf.is_behind() => {
                format!("The measurement disagrees here: {first} is {times} times as fast.")
            }
            _ => "Too few slices to tell whether the measurement agrees.".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::advise::{leaves, rank};
    use bench::advise::designs;

    fn of(options: &str, reads_percent: f64) -> Workload {
        leaves::workload(options, 2, reads_percent, false).0
    }

    #[test]
    fn each_leaf_is_a_design_that_can_do_it_and_each_question_is_asked_once() {
        let cases = [
            ("--kind counter", 1.0, "quiescence-counter", 6),
            ("--kind counter --exact", 0.05, "quiescence-exact", 5),
            ("--kind counter --limit 9", 0.05, "quiescence-limit", 3),
            ("--kind counter --limit 9 --exact", 0.05, "quiescence-limit", 3),
            ("--kind counter --limit 9 --migrates", 0.05, "atomic-shared", 3),
            ("--kind counter", 50.0, "atomic-shared", 5),
            ("--kind counter --limit 9", 50.0, "atomic-shared", 2),
            ("--kind reference --value-bytes 4096", 99.0, "quiescence", 3),
            ("--kind reference", 99.95, "quiescence-snapshot", 4),
            // A sum, a count or an update that is a membarrier was advised up to a tenth of the
            // operations, though a thousandth is enough to lose.
            ("--kind counter --exact", 0.1, "atomic-shared", 5),
            ("--kind counter --limit 9", 0.1, "atomic-shared", 2),
            ("--kind reference", 99.9, "quiescence-seqlock", 4),
            ("--kind reference", 50.0, "quiescence-seqlock", 4),
            ("--kind reference --blocks", 99.0, "quiescence-arc-cell", 3),
            ("--kind reference --blocks --migrates", 99.0, "quiescence-srcu", 4),
            ("--kind reference --blocks --migrates --exact", 99.0, "quiescence-exact-cell", 1),
        ];
        for (options, reads_percent, leaf, questions) in cases {
            let workload = of(options, reads_percent);
            let path = path(&workload).expect("it has a tree");
            assert_eq!((path.design, path.steps.len()), (leaf, questions), "{workload:?}");
            let can = designs(workload.measured()).iter().any(|design| design.name == leaf);
            assert!(can, "{leaf} cannot do {workload:?}");
        }
        let told = [
            ("--kind counter --zero", 1.0, "BigRef"),
            ("--kind counter --together", 1.0, "quiescence-seqlock"),
            ("--kind counter --pinned", 1.0, "thread-local"),
            ("--kind reference --blocks --migrates --big", 99.0, "BigRef"),
        ];
        for (options, reads_percent, leaf) in told {
            let workload = of(options, reads_percent);
            let path = path(&workload).expect("it has a tree");
            let last = path.steps.last().map(|step| &*step.answer);
            assert!(last.is_some_and(|last| last.starts_with("yes (--")), "{workload:?}");
            assert_eq!(path.design, leaf);
            let (measured_by, figure) = (Some("a command".to_owned()), None);
            let (beside, undecided) = ("arc-clone", Some("the time was up".to_owned()));
            let figure = LeafFigure { leaf, beside, measured_by, figure, undecided };
            let [_, measured] = path.paragraphs(&[], &[figure]);
            let expected = format!(
                "{leaf} has no place in this ranking: undecided: the time was up; compared with \
                 arc-clone by a command."
            );
            assert!(measured.ends_with(&expected), "{measured}");
            // The first of the ranking was advised, which does not do what was asked for.
            assert_eq!(measured.contains("Take the leaf. "), !workload.pinned, "{measured}");
        }
        assert!(path(&of("--kind table", 1.0)).is_none());
    }

    #[test]
    fn whether_the_measurement_agrees_is_said() {
        let workload = of("--kind counter", 1.0);
        let place = |name, rank| rank::tests::place(name, rank, 1.0);
        let path = path(&workload).unwrap();
        let agrees = path.paragraphs(&[place("quiescence-counter", 1), place("std-mutex", 2)], &[]);
        assert!(agrees[1].contains("agrees"), "{agrees:?}");
        assert!(agrees[0].contains("must a sum be exact? no (--exact); is it"), "{agrees:?}");
        let other = path.paragraphs(&[place("std-mutex", 1), place("quiescence-counter", 2)], &[]);
        // It went on to say that the leaf gains with more CPUs, also where that is not known.
        let disagrees = "The measurement disagrees here: std-mutex is 2.00 times as fast.";
        assert_eq!(other[1], disagrees);
        assert!(path.paragraphs(&[], &[])[1].contains("no place in this ranking."));
        let asks_more = super::path(&of("--kind reference --blocks", 1.0)).unwrap();
        let places = [place("quiescence", 1), place("quiescence-arc-cell", 2)];
        let told = asks_more.paragraphs(&places, &[]);
        assert!(
            told[1].contains("Take the leaf; the first of the ranking, quiescence"),
            "{told:?}"
        );
    }
}
