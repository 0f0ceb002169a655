//! Litmus tests: outcomes that grace periods and sections forbid, and outcomes that they allow.
//!
//! The rule (Alglave, Maranget, McKenney, Parri, Stern, ASPLOS 2018): a cycle of grace periods and
//! sections is forbidden exactly when it has at least as many grace periods as sections. A cycle is
//! written here as each thread setting a variable of its own and loading that of the next, all of
//! them in vain; accesses are relaxed. [`forbidden`] outcomes must never be reached; [`allowed`] ones
//! must be, or the models would be too strong to show anything.

use crate::scenario::Op::{Get, Lock, Offline, Online, QuiescentState, Request, Set, Unlock, Wait};
use crate::scenario::{Op, Outcome, Scenario, Thread};

const X: u8 = 0;
const Y: u8 = 1;
const Z: u8 = 2;
const W: u8 = 3;

/// A grace period between a store and a load.
fn updater(name: &'static str, set: u8, get: u8) -> Thread {
    Thread::other(name, &[Set(set), Request, Wait, Get(get)])
}

/// A section around a store and a load.
fn section(name: &'static str, set: u8, get: u8) -> Thread {
    Thread::reader(name, &[Lock, Set(set), Get(get), Unlock])
}

fn saw(thread: usize, variable: u8, value: u8) -> Outcome {
    Outcome { thread, variable, value }
}

fn test(
    name: &'static str,
    about: &'static str,
    threads: Vec<Thread>,
    outcome: &[Outcome],
) -> Scenario {
    Scenario { outcome: outcome.to_vec(), ..Scenario::new(name, about, threads) }
}

/// A reader's program against one grace period: store buffering between the two.
fn against_grace_period(name: &'static str, about: &'static str, reader: Thread) -> Scenario {
    test(name, about, vec![reader, updater("updater", Y, X)], &[saw(0, Y, 0), saw(1, X, 0)])
}

/// Outcomes that must never be reached.
pub fn forbidden() -> Vec<Scenario> {
    let mut all = with_sections();
    all.extend(with_qsbr());
    all.push(test(
        "litmus-gp-gp",
        "store buffering between two grace periods, without any reader",
        vec![updater("a", X, Y), updater("b", Y, X)],
        &[saw(0, Y, 0), saw(1, X, 0)],
    ));
    all
}

fn with_sections() -> Vec<Scenario> {
    let shapes: [(&str, &str, &str, &[Op]); 5] = [
        ("litmus-sb", "litmus-sb-portable", "accesses in order", &[Lock, Set(X), Get(Y), Unlock]),
        (
            "litmus-sb-swapped",
            "litmus-sb-swapped-portable",
            "accesses swapped",
            &[Lock, Get(Y), Set(X), Unlock],
        ),
        (
            "litmus-sb-before",
            "litmus-sb-before-portable",
            "the first access before the section",
            &[Set(X), Lock, Get(Y), Unlock],
        ),
        (
            "litmus-sb-after",
            "litmus-sb-after-portable",
            "the last access after the section",
            &[Lock, Set(X), Unlock, Get(Y)],
        ),
        (
            "litmus-sb-empty",
            "litmus-sb-empty-portable",
            "an empty section between",
            &[Set(X), Lock, Unlock, Get(Y)],
        ),
    ];
    let mut all = Vec::new();
    for (name, portable, about, program) in shapes {
        let reader = Thread::reader("reader", program);
        all.push(against_grace_period(name, about, reader.clone()));
        all.push(against_grace_period(portable, about, reader).portable());
    }
    let publisher = Thread::other("updater", &[Set(X), Request, Wait, Set(Y)]);
    for (name, first, second) in [("litmus-sync-read", X, Y), ("litmus-sync-read-swapped", Y, X)] {
        let reader = Thread::reader("reader", &[Lock, Get(first), Get(second), Unlock]);
        let threads = vec![reader, publisher.clone()];
        let about = "a section that sees what came after sees what came before";
        all.push(test(name, about, threads, &[saw(0, X, 0), saw(0, Y, 1)]));
    }
    all
}

fn with_qsbr() -> Vec<Scenario> {
    let shapes: [(&str, &str, &[Op]); 5] = [
        ("litmus-qsbr", "accesses in order", &[Online, Set(X), Get(Y), Offline]),
        ("litmus-qsbr-swapped", "accesses swapped", &[Online, Get(Y), Set(X), Offline]),
        ("litmus-qsbr-before", "the first before", &[Set(X), Online, Get(Y), Offline]),
        ("litmus-qsbr-after", "the last after", &[Online, Set(X), Offline, Get(Y)]),
        (
            "litmus-qsbr-state",
            "a quiescent state between",
            &[Online, Set(X), QuiescentState, Get(Y), Offline],
        ),
    ];
    let reader = |program| Thread::qsbr("qsbr", program);
    shapes
        .iter()
        .map(|(name, about, program)| against_grace_period(name, about, reader(program)))
        .collect()
}

/// Two grace periods against two sections: forbidden, and too big for the quick tests.
pub fn forbidden_exhaustive() -> Vec<Scenario> {
    vec![test(
        "litmus-two-two",
        "as many grace periods as sections",
        vec![updater("a", X, Y), section("r", Y, Z), updater("b", Z, W), section("s", W, X)],
        &[saw(0, Y, 0), saw(1, Z, 0), saw(2, W, 0), saw(3, X, 0)],
    )]
}

/// Outcomes that are not promised never to happen, and do.
pub fn allowed() -> Vec<Scenario> {
    vec![
        test(
            "litmus-sections-only",
            "sections order nothing among themselves",
            vec![section("r", X, Y), section("s", Y, X)],
            &[saw(0, Y, 0), saw(1, X, 0)],
        ),
        test(
            "litmus-one-two",
            "one grace period against two sections",
            vec![updater("a", X, Y), section("r", Y, Z), section("s", Z, X)],
            &[saw(0, Y, 0), saw(1, Z, 0), saw(2, X, 0)],
        ),
    ]
}
