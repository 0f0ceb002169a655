//! Decision trees: which counter, and which kind of reference. Their data are in `designs.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A tree: questions, from the first one on, and what they lead to.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tree {
    /// Where it is from.
    pub source: &'static str,
    /// The question that is asked first.
    pub first: &'static str,
    /// The questions, by name.
    pub questions: BTreeMap<&'static str, Question>,
    /// The leaves, by the names of designs, or of types that no ranking has.
    pub leaves: BTreeMap<&'static str, Leaf>,
}

/// A question that is answered by yes or no.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// In words.
    pub ask: &'static str,
    /// What is asked.
    pub need: Need,
    /// From which share of the operations on it is so, in per cent, if the need is a share.
    #[serde(default)]
    pub percent: f64,
    /// The question or leaf that a yes leads to.
    pub yes: &'static str,
    /// That of a no.
    pub no: &'static str,
}

/// What a question asks.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "lowercase")]
pub enum Need {
    /// A limit.
    Limit,
    /// Exact sums, or an exact end.
    Exact,
    /// Frequent reads.
    Often,
    /// Taken on one CPU, given back on another.
    Migrates,
    /// Held while the reader blocks.
    Blocks,
    /// A value to copy.
    Copied,
    /// Frequent updates.
    Replaced,
    /// Only whether it is zero.
    Zero,
    /// Several counts at once.
    Together,
    /// Threads that stay on their CPU.
    Pinned,
    /// One object for all.
    Big,
}

/// Where a path ends.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    /// Why there.
    pub because: &'static str,
    /// The plainest design that does the same work: what it is compared with.
    pub beside: &'static str,
    /// What measures both, if the ranking does not.
    pub race: Race,
}

/// A race of a leaf and the design beside it.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Race {
    /// That of `rcu advise` with these options.
    Options(&'static str),
    /// A case of `rcu bench percpu`, and what the leaf is called there.
    Case(&'static str, &'static str),
}

/// The tree of a kind of shared state, if it has one.
pub fn tree(kind: &str) -> Option<&'static Tree> {
    super::KNOWN.trees.get(kind)
}

impl Tree {
    /// The leaf that these answers lead to, and each question on the way with its answer.
    ///
    /// # Panics
    /// If the data name a leaf that there is not.
    pub fn walk(
        &'static self,
        is_so: impl Fn(&Question) -> bool,
    ) -> (&'static str, &'static Leaf, Vec<(&'static Question, bool)>) {
        let (mut at, mut path) = (self.first, Vec::new());
        while let Some(question) = self.questions.get(at) {
            let answer = is_so(question);
            path.push((question, answer));
            at = if answer { question.yes } else { question.no };
        }
        (at, self.leaves.get(at).expect("a question leads to a question or a leaf"), path)
    }
}

#[cfg(test)]
mod tests {
    use super::Need;

    #[test]
    fn every_question_and_every_leaf_is_reached() {
        for tree in super::super::KNOWN.trees.values() {
            let next = tree.questions.values().flat_map(|question| [question.yes, question.no]);
            let mut next: Vec<&str> = next.chain([tree.first]).collect();
            next.sort_unstable();
            next.dedup();
            let mut all: Vec<&str> =
                tree.questions.keys().chain(tree.leaves.keys()).copied().collect();
            all.sort_unstable();
            assert_eq!(next, all);
        }
    }

    #[test]
    fn a_question_for_a_share_says_the_share_that_decides() {
        let trees = super::super::KNOWN.trees.values();
        for question in trees.flat_map(|tree| tree.questions.values()) {
            let is_share = matches!(question.need, Need::Often | Need::Replaced);
            let says = format!("in {} % of the operations or more?", question.percent);
            assert_eq!(
                (question.percent > 0.0, question.ask.contains(&says)),
                (is_share, is_share)
            );
        }
    }
}
