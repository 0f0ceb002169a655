//! `rcu bench gp`: how long a grace period takes, and what waiting for it costs the readers.

use super::rounds::{Metric, Unit};
use super::scenes::{Scenes, What, scene};

const LATENCY: &[Metric] =
    &[Metric::new("p50", Unit::Nanoseconds), Metric::new("p99", Unit::Nanoseconds)];

// By the CPU second first: what a waiter burns is missing there, and on a machine that others use
// too, the reads by the second tell what the others did.
const CONTENTION: &[Metric] = &[
    Metric::new("reads per CPU s", Unit::PerSecond),
    Metric::new("reads", Unit::PerSecond),
    Metric::new("grace periods", Unit::PerSecond),
];

const BASES: &[&str] = &["liburcu-memb", "quiescence"];

/// The suite.
pub static SCENES: Scenes = Scenes {
    bench: "gp",
    bases: BASES,
    groups: &[("gp", "A grace period, by what other threads do")],
    all: &[
        scene("gp/alone", "nobody else registered", LATENCY, wait(0, 0)),
        scene("gp/busy-reader", "one busy reader", LATENCY, wait(0, 1)),
        scene("gp/200-idle", "200 idle threads", LATENCY, wait(200, 0)),
        scene("gp/10000-idle", "10,000 idle threads", LATENCY, wait(10_000, 0)),
    ],
};

/// More readers than CPUs.
pub static OVERSUBSCRIBED: Scenes = Scenes {
    bench: "gp --oversubscribed",
    bases: BASES,
    groups: &[("gp", "What readers get done beside grace periods")],
    all: &[scene(
        "gp/oversubscribed",
        "6 readers with sections of 1 µs, one updater that waits in a loop",
        CONTENTION,
        What::Contended(6),
    )],
};

const fn wait(idle: usize, readers: usize) -> What {
    What::Wait { idle, readers }
}
