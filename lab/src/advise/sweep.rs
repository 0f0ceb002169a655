//! Where the answer flips: the leaders again, with one thing of the workload changed.
//!
//! A ranking holds for one share of reads and one number of threads. A user's share is a guess, or
//! changes next year, so the page says from where on another design is the better one.

use std::collections::BTreeSet;

use bench::units;
use serde::Serialize;

use super::decide::Standing;
use super::rank::{Place, best};
use super::simplicity::demands;
use super::verdict::{listed, recommended};
use crate::workload::Workload;

/// Shares of reads that are tried, in per cent.
const READ_SHARES: [f64; 5] = [100.0, 99.9, 99.0, 90.0, 50.0];

/// What is changed in a sweep.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Over {
    /// The share of reads.
    ReadsPercent,
    /// The number of threads.
    Threads,
}

/// One race of a sweep.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Point {
    /// The share or the number.
    pub(super) value: f64,
    /// Who came where.
    #[serde(rename = "designs")]
    pub(super) places: Vec<Place>,
}

impl Point {
    /// The place of the design of this name.
    pub(super) fn place(&self, name: &str) -> Option<&Place> {
        self.places.iter().find(|place| place.design.name == name)
    }
}

/// The races over one changed thing.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Sweep {
    pub(super) over: Over,
    /// The value that the workload itself has.
    pub(super) own: f64,
    /// In the order in which they were run.
    pub(super) points: Vec<Point>,
}

/// A change of the workload with which another design is the best.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Flip {
    pub(super) over: Over,
    /// The value at which the answer is another one.
    pub(super) value: f64,
    /// The design that is first there.
    pub(super) design: &'static str,
    /// Its operations a second there.
    pub(super) throughput: f64,
    /// The best there of the set of the workload as it is.
    pub(super) instead_of: &'static str,
    /// How many times as fast as that one.
    pub(super) times: f64,
}

impl Over {
    /// The workload with this changed.
    pub(super) fn at(self, value: f64, workload: &Workload) -> Workload {
        let mut changed = workload.clone();
        match self {
            Over::ReadsPercent => changed.reads_percent = value,
            Over::Threads => changed.threads = value as u32,
        }
        changed
    }

    /// The setting in words: "at 90 % reads", "with 4 threads".
    pub(super) fn setting(self, value: f64) -> String {
        match self {
            Over::ReadsPercent => format!("at {} % reads", units::percent(value)),
            Over::Threads if value == 1.0 => "with 1 thread".to_owned(),
            Over::Threads => format!("with {value} threads"),
        }
    }

    /// What the sweep is over, as a title.
    pub(super) fn title(self) -> &'static str {
        match self {
            Over::ReadsPercent => "Share of reads",
            Over::Threads => "Threads",
        }
    }

    /// The setting as the head of a column.
    pub(super) fn column(self, value: f64) -> String {
        match self {
            Over::ReadsPercent => format!("{} %", units::percent(value)),
            Over::Threads => value.to_string(),
        }
    }
}

/// The shares of reads that are tried, the workload's own among them, from most reads to least.
pub(super) fn read_shares(own: f64) -> Vec<f64> {
    let mut shares = [&READ_SHARES[..], &[own]].concat();
    shares.sort_by(|a, b| b.total_cmp(a));
    shares.dedup();
    shares
}

impl Flip {
    fn sentence(&self) -> String {
        format!(
            "The answer flips {}: there {} is first with {} million operations per second, {} \
             times as many as {}.",
            self.over.setting(self.value),
            self.design,
            units::figures(self.throughput / 1e6),
            units::figures(self.times),
            self.instead_of
        )
    }
}

/// The order in which the points are run: the workload's own first, without which there is nothing
/// to flip from, then the farthest, where a flip is likeliest. Time may run out before the last.
pub(super) fn running_order(values: &[f64], own: f64) -> Vec<f64> {
    let mut order = values.to_vec();
    let urgency = |value: f64| if value == own { f64::INFINITY } else { (value - own).abs() };
    order.sort_by(|&a, &b| urgency(b).total_cmp(&urgency(a)));
    order
}

/// The numbers of threads that are tried.
pub(super) fn thread_counts(own: u32, cpus: u32) -> Vec<f64> {
    BTreeSet::from([1, own, cpus, 2 * cpus]).into_iter().map(f64::from).collect()
}

/// The designs worth a sweep: `choice`, which is recommended, the first of each family, since it is
/// between families that the choice flips, ours, and then the first of all. `places` is ordered by
/// rank.
pub(super) fn leaders(
    places: &[Place],
    choice: Option<&'static str>,
    quick: bool,
) -> BTreeSet<&'static str> {
    let mut families = BTreeSet::new();
    let mut of_families: Vec<&Place> =
        places.iter().filter(|place| families.insert(place.design.about.family)).collect();
    // The winner, ours and the best lock, whatever else has to go.
    of_families.sort_by_key(|place| {
        let kept = place.rank == 1 || place.design.ours || is_plain_lock(place);
        (!kept, place.rank)
    });
    let mut chosen: BTreeSet<_> = choice.into_iter().collect();
    for place in of_families.into_iter().chain(places) {
        if chosen.len() < leaders_at_most(quick) {
            chosen.insert(place.design.name);
        }
    }
    chosen
}

/// How many designs [`leaders`] chooses at most. More take longer and tell less.
pub(super) fn leaders_at_most(quick: bool) -> usize {
    if quick { 4 } else { 6 }
}

/// Whether this is one lock around everything, the tool that everybody knows.
pub(super) fn is_plain_lock(place: &Place) -> bool {
    place.design.about.family == "lock"
}

impl Sweep {
    /// The names of the designs in it, in the order of the workload's own ranking.
    pub(super) fn designs(&self) -> Vec<&'static str> {
        let mut known = self.points.iter().filter(|point| !point.places.is_empty());
        let at_own = known.clone().find(|point| point.value == self.own);
        let places = at_own.or(known.next()).into_iter().flat_map(|point| &point.places);
        places.map(|place| place.design.name).collect()
    }

    /// Where each design of the workload's own set is shown to be slower than another one.
    pub(super) fn flips(&self) -> Vec<Flip> {
        let own = self.points.iter().find(|point| point.value == self.own);
        let places = || own.into_iter().flat_map(|point| &point.places);
        let winners = || places().filter(|place| place.standing.is_in_set());
        let flip = |point: &Point| {
            // One without a figure may still be the best.
            let there = winners().map(|place| point.place(place.design.name));
            let there: Vec<&Place> = there.collect::<Option<_>>()?;
            let (first, old) = (best(&point.places)?, best(there.iter().copied())?);
            there.iter().all(|place| place.is_behind()).then_some(Flip {
                over: self.over,
                value: point.value,
                design: first.design.name,
                throughput: first.throughput.median,
                instead_of: old.design.name,
                times: old.best_is_faster.median,
            })
        };
        self.points.iter().filter_map(flip).collect()
    }

    /// What becomes of `choice`, the design that is recommended for the workload as it is, in
    /// words: where the answer flips, where it does not, and where that is not known.
    pub(super) fn sentences(&self, choice: &str) -> Vec<String> {
        let flips = self.flips();
        let [mut same, mut simpler, mut faster, mut unknown] = [const { Vec::new() }; 4];
        for point in self.points.iter().filter(|point| point.value != self.own) {
            let setting = self.over.setting(point.value);
            let those = (point.place(choice), recommended(&point.places), best(&point.places));
            match those {
                // Said by the flip.
                _ if flips.iter().any(|flip| flip.value == point.value) => {}
                (Some(place), _, Some(best)) if place.is_behind() => {
                    let times = units::figures(place.best_is_faster.median);
                    faster.push(format!("{} {setting} ({times} times)", best.design.name));
                }
                (Some(place), Some(there), _) if demands(there.design) < demands(place.design) => {
                    simpler.push(format!("{} {setting}", there.design.name));
                }
                (Some(place), ..) if place.standing == Standing::In => same.push(setting),
                _ => unknown.push(setting),
            }
        }
        let mut sentences: Vec<String> = flips.iter().map(Flip::sentence).collect();
        let mut say = |what: &str, where_it_is: &[String]| {
            if !where_it_is.is_empty() {
                sentences.push(format!("{what} {}.", listed(where_it_is)));
            }
        };
        say("The answer is the same", &same);
        say("Faster than it:", &faster);
        say("Simpler and about as fast:", &simpler);
        say("Too few slices to tell", &unknown);
        sentences
    }
}

#[cfg(test)]
mod tests {
    use bench::statistics::Ratio;

    use super::*;
    use crate::advise::rank;

    fn place(index: usize, rank: usize, throughput: f64) -> Place {
        let designs = bench::advise::designs(bench::advise::Workload::Table);
        rank::tests::place(designs[index].name, rank, throughput)
    }

    fn sweep(points: Vec<(f64, Vec<Place>)>) -> Sweep {
        let points = points.into_iter().map(|(value, places)| Point { value, places }).collect();
        Sweep { over: Over::ReadsPercent, own: 99.0, points }
    }

    #[test]
    fn another_first_is_a_flip_and_a_tie_with_the_old_first_is_none() {
        let sweep = sweep(vec![
            (99.9, vec![place(1, 1, 9.0), place(0, 1, 8.9)]),
            (99.0, vec![place(0, 1, 8.0), place(1, 2, 4.0)]),
            (50.0, vec![place(1, 1, 6.0e6), place(0, 2, 3.0e6)]),
        ]);
        let flips = sweep.flips();
        assert_eq!(flips.len(), 1, "{flips:?}");
        let names = bench::advise::designs(bench::advise::Workload::Table);
        assert_eq!((flips[0].value, flips[0].design), (50.0, names[1].name));
        assert_eq!((flips[0].instead_of, flips[0].times), (names[0].name, 2.0));
        let sentences = sweep.sentences(names[0].name);
        assert_eq!(sentences[1..], ["The answer is the same at 99.9 % reads."]);
        assert!(sentences[0].contains("at 50 % reads"), "{sentences:?}");
        assert!(sentences[0].contains("6.00 million") && sentences[0].contains("2.00 times"));
    }

    /// It was the simplest of its rank.
    #[test]
    fn a_flip_is_from_the_best_of_those_that_were_equal() {
        let behind = |index, times| {
            let mut place = place(index, 2, 3.0);
            place.best_is_faster.median = times;
            place
        };
        let own = vec![place(0, 1, 8.0), place(1, 1, 8.0), place(2, 2, 4.0)];
        let there = vec![place(2, 1, 6.0), behind(0, 2.0), behind(1, 1.5)];
        let flip = sweep(vec![(99.0, own), (50.0, there)]).flips().remove(0);
        let names = bench::advise::designs(bench::advise::Workload::Table);
        assert_eq!((flip.instead_of, flip.times), (names[1].name, 1.5));
    }

    /// A flip was told of what one run of a few slices had by chance; and that the answer is the
    /// same where nothing was known.
    #[test]
    fn what_is_not_shown_is_neither_a_flip_nor_the_same_answer() {
        let with = |index, rank, standing, low| {
            let place = place(index, rank, 3.0);
            let best_is_faster = Ratio { low, ..place.best_is_faster };
            Place { standing, best_is_faster, ..place }
        };
        let own = vec![place(0, 1, 8.0), place(1, 2, 4.0)];
        let there = |standing| vec![place(1, 1, 6.0), with(0, 2, standing, 0.8)];
        let points = [(99.0, own), (90.0, there(Standing::Out)), (50.0, there(Standing::Near))];
        let sweep = sweep([&points[..], &[(1.0, Vec::new())]].concat());
        assert!(sweep.flips().is_empty());
        let expected = "Too few slices to tell at 90 % reads, at 50 % reads and at 1 % reads.";
        assert_eq!(sweep.sentences("std-mutex"), [expected]);
        assert_eq!(sweep.designs().len(), 2);
    }

    /// A design of the own set that had no figure there was taken to be slower.
    #[test]
    fn it_does_not_flip_where_one_that_was_equal_has_no_figure() {
        let own = vec![place(0, 1, 8.0), place(1, 1, 7.9), place(2, 2, 4.0)];
        let there = vec![place(2, 1, 6.0), place(1, 2, 3.0)];
        let sweep = sweep(vec![(99.0, own), (50.0, there)]);
        assert!(sweep.flips().is_empty());
        assert_eq!(sweep.sentences("std-mutex"), ["Too few slices to tell at 50 % reads."]);
    }

    #[test]
    fn the_same_answer_everywhere_is_said_too() {
        let first = || vec![place(0, 1, 8.0)];
        let sweep = sweep(vec![(100.0, first()), (99.0, first()), (50.0, first())]);
        let expected = "The answer is the same at 100 % reads and at 50 % reads.";
        assert_eq!(sweep.sentences("std-mutex"), [expected]);
    }

    #[test]
    fn where_one_that_tied_with_the_choice_is_faster_is_said() {
        // Two are first, so that neither is a flip, but one of them falls behind.
        let own = vec![place(0, 1, 8.0), place(1, 1, 7.9)];
        let sweep = sweep(vec![(99.0, own), (50.0, vec![place(1, 1, 9.0), place(0, 2, 4.5)])]);
        assert!(sweep.flips().is_empty());
        let expected = "Faster than it: std-rwlock at 50 % reads (2.00 times).";
        assert_eq!(sweep.sentences("std-mutex"), [expected]);
        assert_eq!(sweep.sentences("std-rwlock"), ["The answer is the same at 50 % reads."]);
    }

    #[test]
    fn without_the_workload_s_own_point_there_is_nothing_to_flip_from() {
        assert!(sweep(vec![(50.0, vec![place(1, 1, 6.0)])]).flips().is_empty());
        assert!(sweep(Vec::new()).flips().is_empty());
    }

    #[test]
    fn leaders_hold_the_winner_ours_and_a_lock() {
        let designs = bench::advise::designs(bench::advise::Workload::Table);
        let places: Vec<Place> = (0..designs.len())
            .rev()
            .map(|index| place(index, designs.len() - index, 1.0))
            .collect();
        for quick in [false, true] {
            let chosen = leaders(&places, None, quick);
            let holds = |wanted: &dyn Fn(&Place) -> bool| {
                places.iter().any(|place| wanted(place) && chosen.contains(place.design.name))
            };
            assert!(holds(&|place| place.rank == 1));
            assert!(holds(&|place| place.design.ours));
            assert!(holds(&is_plain_lock));
            assert!(chosen.len() <= leaders_at_most(quick));
        }
    }

    #[test]
    fn leaders_hold_the_recommended_one_of_two_that_tie() {
        let designs = bench::advise::designs(bench::advise::Workload::Table);
        let tie = ["quiescence-qsbr", "quiescence"];
        let ranked = |index: usize| match tie.contains(&designs[index].name) {
            true => place(index, 1, 2.0),
            false => place(index, 3, 1.0),
        };
        let mut places: Vec<Place> = (0..designs.len()).map(ranked).collect();
        // The one that asks more of its users first.
        places.sort_by_key(|place| (place.rank, place.design.name != tie[0]));
        assert_eq!(recommended(&places).expect("a set").design.name, tie[1]);
        assert!(leaders(&places, Some(tie[1]), true).contains(tie[1]));
    }

    #[test]
    fn shares_hold_the_workload_s_own_once() {
        assert_eq!(read_shares(99.0), READ_SHARES);
        assert_eq!(read_shares(95.0), [100.0, 99.9, 99.0, 95.0, 90.0, 50.0]);
    }

    #[test]
    fn the_own_point_is_run_first_and_then_the_farthest() {
        assert_eq!(running_order(&READ_SHARES, 99.0), [99.0, 50.0, 90.0, 100.0, 99.9]);
        assert_eq!(running_order(&[1.0, 2.0, 4.0], 2.0), [2.0, 4.0, 1.0]);
    }

    #[test]
    fn thread_counts_are_sorted_and_each_once() {
        assert_eq!(thread_counts(2, 2), [1.0, 2.0, 4.0]);
        assert_eq!(thread_counts(3, 2), [1.0, 2.0, 3.0, 4.0]);
        assert_eq!(thread_counts(1, 1), [1.0, 2.0]);
    }
}
