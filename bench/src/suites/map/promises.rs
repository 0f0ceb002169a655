//! What is promised of the map.

use super::super::promises::Bound::{AtLeast, AtMost};
use super::super::promises::{Against, Bound, Promise};

/// The map that is promised about, and all that are compared with it.
const OURS: &str = "quiescence-hashmap";
const OTHERS: Against = Against::BestOf(&[
    "std-rwlock",
    "parking_lot-rwlock",
    "sharded-rwlock",
    "scc-hashmap",
    "scc-hashindex",
    "papaya",
    "dashmap",
    "flurry",
    "evmap",
]);

const fn promise(
    case: &'static str,
    metric: &'static str,
    against: Against,
    bound: Bound,
) -> Promise {
    Promise { case, metric, rival: OURS, against, bound, or_at_most: None }
}

/// At least as many operations as the best of the others.
const fn even(case: &'static str) -> Promise {
    promise(case, "operations", OTHERS, AtLeast(1.0))
}

/// Clearly more.
const fn more(case: &'static str) -> Promise {
    promise(case, "operations", OTHERS, AtLeast(1.3))
}

pub(in super::super) static PROMISES: &[Promise] = &[
    even("get/1000/1-thread"),
    more("get/1000/2-threads"),
    even("get/1000000/1-thread"),
    more("get/1000000/2-threads"),
    even("replace-99/1000/1-thread"),
    more("replace-99/1000/2-threads"),
    even("replace-99/1000000/1-thread"),
    more("replace-99/1000000/2-threads"),
    even("replace-90/1000/1-thread"),
    even("replace-90/1000/2-threads"),
    even("replace-90/1000000/1-thread"),
    even("replace-90/1000000/2-threads"),
    even("replace-50/1000/1-thread"),
    even("replace-50/1000/2-threads"),
    even("replace-50/1000000/1-thread"),
    even("replace-50/1000000/2-threads"),
    even("churn-99/1000/1-thread"),
    more("churn-99/1000/2-threads"),
    even("churn-99/1000000/1-thread"),
    more("churn-99/1000000/2-threads"),
    even("churn-90/1000/1-thread"),
    even("churn-90/1000/2-threads"),
    even("churn-90/1000000/1-thread"),
    even("churn-90/1000000/2-threads"),
    even("churn-50/1000/1-thread"),
    even("churn-50/1000/2-threads"),
    even("churn-50/1000000/1-thread"),
    even("churn-50/1000000/2-threads"),
    promise("memory/1000000", "grown", Against::Rival("std-rwlock"), AtMost(1.5)),
    promise("growth/10000000/1-thread", "p99.9", Against::Nothing, AtMost(100_000.0)),
    promise("growth/10000000/2-threads", "p99.9", Against::Nothing, AtMost(100_000.0)),
    more("bustle/read-heavy/1-thread"),
    more("bustle/read-heavy/2-threads"),
    even("bustle/exchange/1-thread"),
    even("bustle/exchange/2-threads"),
    even("bustle/rapid-grow/1-thread"),
    even("bustle/rapid-grow/2-threads"),
];
