//! Which figures cannot be: what a CPU does not do is an accident of the run.

use super::Cost;
use crate::slices::Missing;
use crate::units;

/// An L1 hit takes so long, in nanoseconds, on any CPU of these decades.
const L1_NS: (f64, f64) = (0.5, 10.0);
/// A price whose quartiles differ by more than this factor is two: of a machine that is now slower,
/// or of pages that lie now here, now there.
const STEADY: f64 = 1.5;
/// Two figures that may be equal differ by this factor.
const EQUAL: f64 = 0.9;

/// What costs no less than what: the second, and the first.
const NO_LESS: [(&str, &str); 8] = [
    ("l2_hit", "l1_hit"),
    ("main_memory", "l2_hit"),
    ("cpu_local_lock", "atomic_increment"),
    ("read_lock", "atomic_increment"),
    ("shared_increment", "atomic_increment"),
    ("shared_lock", "cpu_local_lock"),
    ("shared_read_lock", "read_lock"),
    ("shared_rcu_read", "rcu_read"),
];

/// Throws away the figures that cannot be, and says why in their place; how many these are.
pub(super) fn throw_away(costs: &mut [Cost]) -> u32 {
    let missing = |costs: &[Cost]| costs.iter().filter(|cost| cost.ns.is_none()).count() as u32;
    let before = missing(costs);
    let ns = |costs: &[Cost], id| costs.iter().find(|cost| cost.id == id)?.ns.map(|ns| ns.median);
    let drop = |costs: &mut [Cost], id, why| {
        let cost = costs.iter_mut().find(|cost| cost.id == id);
        if let Some(cost) = cost {
            (cost.ns, cost.missing) = (None, Some(Missing::Impossible(why)));
        }
    };
    for cost in &mut *costs {
        if let Some(ns) = cost.ns.filter(|ns| ns.high > STEADY * ns.low) {
            (cost.ns, cost.missing) =
                (None, Some(Missing::Unsteady { between: [ns.low, ns.high] }));
        }
    }
    if let Some(hit) = ns(costs, "l1_hit").filter(|ns| *ns < L1_NS.0 || *ns > L1_NS.1) {
        let why = format!("{} for an L1 hit", units::nanoseconds(hit));
        drop(costs, "l1_hit", why);
    }
    for (more, less) in NO_LESS {
        if let (Some(more_ns), Some(less_ns)) = (ns(costs, more), ns(costs, less))
            && more_ns < EQUAL * less_ns
        {
            let [more_ns, less_ns] = [more_ns, less_ns].map(units::nanoseconds);
            let why = format!("{more_ns}, less than {less} with {less_ns}");
            drop(costs, more, why);
        }
    }
    missing(costs) - before
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::Spread;

    #[test]
    fn what_cannot_be_is_thrown_away_and_said() {
        let cost = |id, ns: f64| Cost {
            id,
            name: id.to_owned(),
            threads: 1,
            ns: Some(Spread { median: ns, low: ns, high: ns }),
            missing: None,
            published_ns: None,
        };
        let mut costs = [
            cost("l1_hit", 307.0),
            cost("l2_hit", 4.0),
            cost("main_memory", 3.0),
            cost("atomic_increment", 8.0),
            cost("cpu_local_lock", 7.5),
            cost("read_lock", 5.0),
            cost("shared_increment", 8.5),
            cost("shared_lock", 30.0),
        ];
        costs[7].ns = Some(Spread { median: 30.0, low: 25.0, high: 50.0 });
        assert_eq!(throw_away(&mut costs), 4);
        let left = |cost: &&Cost| cost.ns.is_some();
        let left: Vec<_> = costs.iter().filter(left).map(|cost| cost.id).collect();
        assert_eq!(left, ["l2_hit", "atomic_increment", "cpu_local_lock", "shared_increment"]);
        let why = costs[5].missing.as_ref().unwrap().to_string();
        assert_eq!(why, "thrown away: 5.00 ns, less than atomic_increment with 8.00 ns");
        let why = costs[7].missing.as_ref().unwrap().to_string();
        assert_eq!(why, "it had no one price: 25.0 ns as often as 50.0 ns");
    }

    #[test]
    fn what_is_compared_is_measured() {
        for id in NO_LESS.iter().flat_map(|(more, less)| [more, less]) {
            assert!(crate::costs::ids().any(|known| known == *id), "{id}");
        }
    }
}
