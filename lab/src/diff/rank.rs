//! Which functions cost more in one profile than in another, for a unit of work.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::stacks::Profile;

/// One side: its samples, and what a unit of its work costs in all.
#[derive(Debug, Serialize)]
pub(super) struct Side {
    /// As typed.
    pub(super) name: String,
    pub(super) samples: u64,
    /// Nanoseconds, samples, or 100 per cent, as the scale says.
    pub(super) unit_cost: f64,
    #[serde(skip)]
    pub(super) profile: Profile,
}

impl Side {
    /// What one sample stands for.
    pub(super) fn cost_of_sample(&self) -> f64 {
        self.unit_cost / self.samples as f64
    }
}

/// What a function costs for a unit of work on both sides.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Growth {
    pub(super) function: String,
    /// In the function itself.
    pub(super) before: f64,
    pub(super) after: f64,
    /// What `after - before` may be off by, at 95 %, as samples are drawn by chance.
    pub(super) error: f64,
    /// In the function and in what it calls.
    pub(super) total_before: f64,
    pub(super) total_after: f64,
}

impl Growth {
    pub(super) fn growth(&self) -> f64 {
        self.after - self.before
    }
}

/// Samples on both sides: in a function itself, and in it and what it calls.
type Counts = ([u64; 2], [u64; 2]);

/// All functions, the one that grew most first.
pub(super) fn rank(sides: &[Side; 2]) -> Vec<Growth> {
    let mut counts: BTreeMap<&str, Counts> = BTreeMap::new();
    for (side, number) in sides.iter().zip(0..) {
        for (stack, count) in &side.profile.stacks {
            // A function that calls itself is in a stack once.
            for function in stack.iter().map(String::as_str).collect::<BTreeSet<_>>() {
                counts.entry(function).or_default().1[number] += count;
            }
            if let Some(leaf) = stack.last() {
                counts.entry(leaf).or_default().0[number] += count;
            }
        }
    }
    let each = [sides[0].cost_of_sample(), sides[1].cost_of_sample()];
    let cost = |counts: [u64; 2]| [0, 1].map(|side| counts[side] as f64 * each[side]);
    let growth = |(function, (own, total)): (&str, Counts)| {
        let [before, after] = cost(own);
        let [total_before, total_after] = cost(total);
        // The variance of a number of samples is about that number.
        let variance = |side: usize| own[side] as f64 * each[side] * each[side];
        let error = 1.96 * (variance(0) + variance(1)).sqrt();
        let function = function.to_owned();
        Growth { function, before, after, error, total_before, total_after }
    };
    let mut ranked: Vec<Growth> = counts.into_iter().map(growth).collect();
    ranked.sort_by(|a, b| b.growth().total_cmp(&a.growth()));
    ranked
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in crate::diff) fn side(text: &str, unit_cost: f64) -> Side {
        let profile = Profile::parse(text).unwrap();
        Side { name: String::new(), samples: profile.samples(), unit_cost, profile }
    }

    #[test]
    fn growth_is_for_a_unit_of_work_and_not_for_a_sample() {
        // Twice as many samples of work that costs the same: nothing grew but `lock`.
        let before = side("main;read 50\nmain;lock 50\n", 10.0);
        let after = side("main;read 50\nmain;lock 150\n", 20.0);
        let ranked = rank(&[before, after]);
        let of = |name: &str| ranked.iter().find(|each| each.function == name).unwrap();
        assert_eq!(ranked[0].function, "lock");
        assert_eq!((of("lock").before, of("lock").after), (5.0, 15.0));
        assert_eq!(of("read").growth(), 0.0);
        assert_eq!((of("main").before, of("main").total_after), (0.0, 20.0));
        assert!(of("lock").error > 0.0 && of("lock").error < of("lock").growth());
    }

    #[test]
    fn a_function_that_calls_itself_counts_once_in_its_total() {
        let ranked = rank(&[side("f;f;f 4\n", 4.0), side("g 1\n", 1.0)]);
        let f = ranked.last().unwrap();
        assert_eq!((&*f.function, f.before, f.after, f.total_before), ("f", 4.0, 0.0, 4.0));
    }
}
