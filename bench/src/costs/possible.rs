//! Which figures cannot be: what a CPU does not do is an accident of the run.

use super::{Cost, LISTED};
use crate::slices::Missing;
use crate::statistics::spread;
use crate::units;

/// A price whose quartiles differ by more than this factor is two: of a machine that is now slower,
/// or of pages that lie now here, now there.
const STEADY: f64 = 1.5;
/// The medians of a run's first half and of its second half differ by less than this factor, of one
/// thread and of several. Neighbours on the host use memory and caches for seconds on end; within
/// each half the price is steady then.
const HALVES: [f64; 2] = [1.05, 1.10];
/// Two figures that may be equal differ by this factor.
const EQUAL: f64 = 0.9;

/// Why a figure of so many threads is none: its price changed in the middle of the run, or it had
/// two. Of slices that cost this, in the order in which they were drawn.
pub(super) fn unsteady(values: &[f64], threads: usize) -> Option<Missing> {
    let (first, second) = values.split_at(values.len() / 2);
    if first.is_empty() {
        return None;
    }
    let [first, second] = [first, second].map(|half| spread(half).median);
    let (all, halves) = (spread(values), HALVES[usize::from(threads > 1)]);
    let spans = [(first.min(second), first.max(second), halves), (all.low, all.high, STEADY)];
    let (low, high, _) = spans.into_iter().find(|(low, high, most)| *high > most * low)?;
    Some(Missing::Unsteady { between: [low, high] })
}

/// Throws away the figures that cannot be, and says why in their place.
pub(super) fn throw_away(costs: &mut [Cost]) {
    let ns = |costs: &[Cost], id| costs.iter().find(|cost| cost.id == id)?.ns.map(|ns| ns.median);
    let drop = |costs: &mut [Cost], id, why| {
        if let Some(cost) = costs.iter_mut().find(|cost| cost.id == id) {
            (cost.ns, cost.missing) = (None, Some(Missing::Impossible(why)));
        }
    };
    for &(id, least, most) in &LISTED.hits_ns {
        if let Some(hit) = ns(costs, id).filter(|ns| *ns < least || *ns > most) {
            drop(costs, id, format!("{} for a hit of a cache", units::nanoseconds(hit)));
        }
    }
    for &(more, less) in &LISTED.no_less {
        if let (Some(more_ns), Some(less_ns)) = (ns(costs, more), ns(costs, less))
            && more_ns < EQUAL * less_ns
        {
            let [more_ns, less_ns] = [more_ns, less_ns].map(units::nanoseconds);
            let why = format!("{more_ns}, less than {less} with {less_ns}");
            drop(costs, more, why);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::costs::tests;

    fn cost(id: &'static str, ns: f64) -> Cost {
        tests::cost(id, Some(ns))
    }

    #[test]
    fn a_hit_of_the_second_cache_does_not_take_as_long_as_memory() {
        let mut costs = [cost("l1_hit", 1.5), cost("l2_hit", 620.0), cost("main_memory", 700.0)];
        throw_away(&mut costs);
        assert_eq!(costs.each_ref().map(|cost| cost.ns.is_some()), [true, false, true]);
        let why = costs[1].missing.as_ref().unwrap().to_string();
        assert_eq!(why, "thrown away: 620 ns for a hit of a cache");
    }

    #[test]
    fn what_cannot_be_is_thrown_away_and_said() {
        let mut costs = [
            cost("l1_hit", 307.0),
            cost("l2_hit", 4.0),
            cost("main_memory", 3.0),
            cost("atomic_increment", 8.0),
            cost("cpu_local_lock", 7.5),
            cost("read_lock", 5.0),
            cost("shared_increment", 8.5),
        ];
        throw_away(&mut costs);
        let left = |cost: &&Cost| cost.ns.is_some();
        let left: Vec<_> = costs.iter().filter(left).map(|cost| cost.id).collect();
        assert_eq!(left, ["l2_hit", "atomic_increment", "cpu_local_lock", "shared_increment"]);
        let why = costs[5].missing.as_ref().unwrap().to_string();
        assert_eq!(why, "thrown away: 5.00 ns, less than atomic_increment with 8.00 ns");
    }

    #[test]
    fn a_price_that_changes_in_the_middle_of_a_run_is_no_figure() {
        let values = [188.0, 190.0, 189.0, 240.0, 241.0, 239.0];
        let changed = Some(Missing::Unsteady { between: [189.0, 240.0] });
        assert_eq!(unsteady(&values, 1), changed);
        assert_eq!(unsteady(&[188.0, 240.0, 189.0, 241.0], 1), None, "it goes both ways");
        let why = unsteady(&[25.0, 50.0, 25.0, 50.0], 2).unwrap().to_string();
        assert_eq!(why, "it took 25.0 ns as often as 50.0 ns");
        for (threads, is_steady) in [(1, false), (2, true)] {
            assert_eq!(unsteady(&[100.0, 108.0], threads).is_none(), is_steady);
        }
        for few in [&[][..], &[7.0]] {
            assert_eq!(unsteady(few, 1), None);
        }
    }

    #[test]
    fn what_is_compared_is_measured() {
        for id in LISTED.no_less.iter().flat_map(|(more, less)| [more, less]) {
            assert!(tests::is_figure(id), "{id}");
        }
    }
}
