//! What the project has promised, as ratios between rivals of one case, and whether it holds here.
//!
//! A promise is met or missed when the whole interval of the ratio says so; else it is too close
//! to call, and more rounds may tell.

use super::rounds::Case;
use crate::statistics::Ratio;

/// On which side of a number a ratio has to be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

/// One promise.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promise {
    pub(super) case: &'static str,
    pub(super) rival: &'static str,
    pub(super) base: &'static str,
    /// Of the case's first metric.
    pub(super) bound: Bound,
}

/// How a promise was kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Held {
    Met,
    Missed,
    TooClose,
}

/// A promise and what was measured of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Verdict {
    pub(super) promise: Promise,
    pub(super) ratio: Ratio,
    pub(super) held: Held,
}

const fn promise(
    case: &'static str,
    rival: &'static str,
    base: &'static str,
    bound: Bound,
) -> Promise {
    Promise { case, rival, base, bound }
}

/// The targets that the library was built for. Reads and grace periods against liburcu's default
/// flavour, whose readers are inlined C.
const PROMISES: [Promise; 10] = [
    promise("read/1-thread", "quiescence", "liburcu-memb", Bound::AtMost(1.05)),
    promise("read/1-thread", "quiescence-reader", "liburcu-memb", Bound::AtMost(1.05)),
    promise("read/1-thread", "quiescence-qsbr", "plain-load", Bound::AtMost(1.1)),
    promise("read/1-thread", "crossbeam-epoch", "quiescence", Bound::AtLeast(3.0)),
    promise("read/1-thread", "seize", "quiescence", Bound::AtLeast(3.0)),
    promise("gp/alone", "quiescence", "liburcu-memb", Bound::AtMost(0.3)),
    promise("gp/busy-reader", "quiescence", "liburcu-memb", Bound::AtMost(0.65)),
    promise("gp/200-idle", "quiescence", "liburcu-memb", Bound::AtMost(0.8)),
    promise("gp/10000-idle", "quiescence", "liburcu-memb", Bound::AtMost(0.5)),
    promise("gp/oversubscribed", "quiescence", "liburcu-memb", Bound::AtLeast(1.0)),
];

/// Judges the promises about what was measured; of the others it says nothing.
pub(super) fn judge(cases: &[Case]) -> Vec<Verdict> {
    let verdict = |promise: &Promise| {
        let case = cases.iter().find(|case| case.id == promise.case)?;
        let ratio = case.ratio(promise.rival, promise.base, 0)?;
        Some(Verdict { promise: *promise, ratio, held: promise.bound.held(&ratio) })
    };
    PROMISES.iter().filter_map(verdict).collect()
}

impl Bound {
    fn held(self, ratio: &Ratio) -> Held {
        let (met, missed) = match self {
            Bound::AtMost(bound) => (ratio.high <= bound, ratio.low > bound),
            Bound::AtLeast(bound) => (ratio.low >= bound, ratio.high < bound),
        };
        match (met, missed) {
            (true, _) => Held::Met,
            (_, true) => Held::Missed,
            _ => Held::TooClose,
        }
    }
}

impl Verdict {
    pub(super) fn is_missed(&self) -> bool {
        self.held == Held::Missed
    }
}

#[cfg(test)]
mod tests {
    use super::super::rounds::{Metric, Series, Unit};
    use super::*;

    #[test]
    fn the_whole_interval_has_to_say_so() {
        let ratio = |low, high| Ratio { median: (low + high) / 2.0, low, high };
        assert_eq!(Bound::AtMost(1.0).held(&ratio(0.8, 1.0)), Held::Met);
        assert_eq!(Bound::AtMost(1.0).held(&ratio(0.8, 1.1)), Held::TooClose);
        assert_eq!(Bound::AtMost(1.0).held(&ratio(1.01, 1.1)), Held::Missed);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(3.0, 4.0)), Held::Met);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(2.9, 4.0)), Held::TooClose);
        assert_eq!(Bound::AtLeast(3.0).held(&ratio(2.0, 2.9)), Held::Missed);
    }

    #[test]
    fn only_what_was_measured_is_judged() {
        const METRICS: &[Metric] = &[Metric { name: "read", unit: Unit::Nanoseconds }];
        let series = |name, ns| Series { name, ours: false, values: vec![vec![ns; 6]] };
        let rivals = vec![series("quiescence", 1.0), series("seize", 2.0)];
        let case = Case {
            id: "read/1-thread",
            title: "one thread",
            metrics: METRICS,
            rivals,
            disturbed: 0,
        };
        let verdicts = judge(&[case]);
        assert_eq!(verdicts.len(), 1);
        assert_eq!(verdicts[0].promise.rival, "seize");
        assert!(verdicts[0].is_missed(), "twice is not three times");
    }

    #[test]
    fn promises_name_rivals_that_can_be_measured() {
        let read: Vec<_> = rivals::bench::read::rivals().iter().map(|rival| rival.name).collect();
        let gp: Vec<_> = rivals::bench::grace::rivals().iter().map(|rival| rival.name).collect();
        for Promise { case, rival, base, .. } in PROMISES {
            let known = if case.starts_with("read/") { &read } else { &gp };
            for name in [rival, base] {
                let compiled_in = rivals::bench::HAS_LIBURCU || !name.starts_with("liburcu");
                assert!(!compiled_in || known.contains(&name), "{case}: {name}");
            }
        }
    }
}
