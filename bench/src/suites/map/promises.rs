//! What is promised of the map.

use super::super::promises::Bound::{AtLeast, AtMost};
use super::super::promises::{Against, Promise, promise};

/// The map that is promised about.
const OURS: &str = "quiescence-hashmap";

/// Nine tenths of what was measured, against the best of the others.
const fn operations(case: &'static str, measured: f64) -> Promise {
    promise(case, "operations", OURS, Against::Best, AtLeast(0.9 * measured), measured)
}

/// The slowest of a thousand insertions, in nanoseconds.
const fn growth(case: &'static str, measured: f64) -> Promise {
    promise(case, "p99.9", OURS, Against::Nothing, AtMost(100_000.0), measured)
}

const STD: Against = Against::Rival("std-rwlock");

pub(in super::super) static PROMISES: &[Promise] = &[
    operations("get/1000/1-thread", 1.41),
    operations("get/1000/2-threads", 1.36),
    operations("get/1000000/1-thread", 1.28),
    operations("get/1000000/2-threads", 1.27),
    operations("replace-99/1000/1-thread", 1.18),
    operations("replace-99/1000000/1-thread", 1.04),
    operations("replace-99/1000000/2-threads", 2.03),
    operations("replace-90/1000/1-thread", 0.77),
    operations("replace-90/1000000/1-thread", 1.06),
    operations("replace-90/1000000/2-threads", 1.41),
    operations("replace-50/1000/1-thread", 0.26),
    operations("replace-50/1000000/1-thread", 0.37),
    operations("replace-50/1000000/2-threads", 0.43),
    operations("churn-99/1000/1-thread", 1.26),
    operations("churn-99/1000000/1-thread", 1.19),
    operations("churn-99/1000000/2-threads", 1.47),
    operations("churn-90/1000/1-thread", 0.91),
    operations("churn-90/1000000/1-thread", 0.86),
    operations("churn-90/1000000/2-threads", 1.44),
    operations("churn-50/1000/1-thread", 0.36),
    operations("churn-50/1000000/1-thread", 0.61),
    operations("churn-50/1000000/2-threads", 0.98),
    promise("memory/1000000", "grown", OURS, STD, AtMost(1.5), 0.99),
    growth("growth/10000000/1-thread", 4_100.0),
    growth("growth/10000000/2-threads", 5_000.0),
    operations("bustle/read-heavy/1-thread", 0.87),
    operations("bustle/read-heavy/2-threads", 1.06),
    operations("bustle/exchange/1-thread", 0.35),
    operations("bustle/exchange/2-threads", 0.32),
    operations("bustle/rapid-grow/1-thread", 0.23),
    operations("bustle/rapid-grow/2-threads", 0.74),
];
