//! Which counter: the decision tree of McKenney's tutorial of 2005, with our counters as leaves.
//!
//! The tree asks what the count is for before it asks what is fast. Each question is a flag; the
//! path through the tree is printed beside the ranking, and whether the measurement agrees.

use bench::units;
use serde::Serialize;

use super::rank::{Place, best};
use super::texts::TEXTS;
use crate::workload::{Kind, Workload};

/// Where the tree is from.
const SOURCE: &str = "after McKenney, Linux Kernel Scalability: Using the Right Tool for the Job, \
                      linux.conf.au 2005";

/// Sums that are at least this share of the operations, in per cent, are frequent: then a sum of
/// many words costs more than its cheap additions save.
const FREQUENT_PERCENT: f64 = 10.0;

/// A question, and what the workload says to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Step {
    pub(super) question: &'static str,
    pub(super) answer: String,
}

/// A path through the tree.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Path {
    pub(super) steps: Vec<Step>,
    /// The design at the leaf.
    pub(super) design: &'static str,
    pub(super) because: &'static str,
}

/// The path of a counter; other kinds have none.
pub(super) fn path(workload: &Workload) -> Option<Path> {
    if workload.kind != Kind::Counter {
        return None;
    }
    let frequent = workload.reads_percent >= FREQUENT_PERCENT;
    let mut steps = vec![Step {
        question: "is there a limit that it must not exceed?",
        answer: match workload.limit {
            Some(limit) => format!("yes, {limit} (--limit)"),
            None => "no (--limit)".to_owned(),
        },
    }];
    if workload.limit.is_none() {
        steps.push(Step {
            question: "must a sum be exact?",
            answer: if workload.exact { "yes (--exact)" } else { "no (--exact)" }.to_owned(),
        });
    }
    let share = units::percent(workload.reads_percent);
    let often = if frequent { "often" } else { "seldom" };
    steps.push(Step {
        question: "how often is it read?",
        answer: format!("{often}, in {share} % of the operations (--reads)"),
    });
    let design = match (workload.limit.is_some(), workload.exact, frequent) {
        (_, _, true) => "atomic-shared",
        (true, _, false) => "quiescence-limit",
        (false, true, false) => "quiescence-exact",
        (false, false, false) => "quiescence-counter",
    };
    Some(Path { steps, design, because: &TEXTS[design] })
}

impl Path {
    /// The path in words, and what the ranking says of its leaf.
    pub(super) fn paragraphs(&self, places: &[Place]) -> Vec<String> {
        let steps = self.steps.iter().map(|step| format!("{} {}", step.question, step.answer));
        let steps: Vec<String> = steps.collect();
        vec![
            format!(
                "The decision tree ({SOURCE}): {}. Its leaf is {}: {}.",
                steps.join("; "),
                self.design,
                self.because
            ),
            self.measured(places),
        ]
    }

    fn measured(&self, places: &[Place]) -> String {
        let leaf = places.iter().find(|place| place.design.name == self.design);
        let (Some(leaf), Some(first)) = (leaf, best(places)) else {
            return format!("{} was not measured.", self.design);
        };
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
    use bench::advise::designs;

    fn counter(limit: Option<u32>, exact: bool, reads_percent: f64) -> Workload {
        Workload { kind: Kind::Counter, limit, exact, reads_percent, ..Workload::built_in() }
    }

    #[test]
    fn each_leaf_is_a_design_that_can_do_it_and_each_question_is_asked_once() {
        let cases = [
            (counter(None, false, 1.0), "quiescence-counter", 3),
            (counter(None, true, 1.0), "quiescence-exact", 3),
            (counter(Some(9), false, 1.0), "quiescence-limit", 2),
            (counter(Some(9), true, 1.0), "quiescence-limit", 2),
            (counter(None, false, 50.0), "atomic-shared", 3),
            (counter(Some(9), false, 50.0), "atomic-shared", 2),
        ];
        for (workload, leaf, questions) in cases {
            let path = path(&workload).expect("a counter has a path");
            assert_eq!((path.design, path.steps.len()), (leaf, questions), "{workload:?}");
            let can = designs(workload.measured()).iter().any(|design| design.name == leaf);
            assert!(can, "{leaf} cannot do {workload:?}");
        }
        assert_eq!(path(&Workload { kind: Kind::Table, ..counter(None, false, 1.0) }), None);
    }

    #[test]
    fn whether_the_measurement_agrees_is_said() {
        let workload = counter(None, false, 1.0);
        let place = |name, rank| rank::tests::place(name, rank, 1.0);
        let path = path(&workload).unwrap();
        let agrees = path.paragraphs(&[place("quiescence-counter", 1), place("std-mutex", 2)]);
        assert!(agrees[1].contains("agrees"), "{agrees:?}");
        assert!(agrees[0].contains("no (--limit); must a sum be exact? no"), "{agrees:?}");
        let other = path.paragraphs(&[place("std-mutex", 1), place("quiescence-counter", 2)]);
        assert!(other[1].contains("std-mutex is 2.00 times as fast"), "{other:?}");
        assert!(path.paragraphs(&[])[1].contains("was not measured"));
    }
}
