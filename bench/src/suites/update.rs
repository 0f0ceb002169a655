//! `rcu bench update`: replace an object of 64 bytes and retire the old one, and all that comes
//! with it.

use super::rounds::{Metric, Unit};
use super::scenes::{Scenes, What, scene};

const UPDATE: &[Metric] = &[
    Metric::new("updates", Unit::PerSecond),
    Metric::new("CPU", Unit::Nanoseconds),
    Metric::new("p99.9", Unit::Nanoseconds),
    Metric::new("unreclaimed peak", Unit::Objects),
];
const TAIL: &[Metric] = &[
    Metric::new("p99.9", Unit::Nanoseconds),
    Metric::new("p50", Unit::Nanoseconds),
    Metric::new("updates", Unit::PerSecond),
];
const HASH: &[Metric] =
    &[Metric::new("operations", Unit::PerSecond), Metric::new("CPU", Unit::Nanoseconds)];
const CALL: &[Metric] = &[Metric::new("call", Unit::Nanoseconds)];
const MEMORY: &[Metric] = &[Metric::new("memory", Unit::Bytes)];
const STALL: &[Metric] = &[
    Metric::new("unreclaimed peak", Unit::Objects),
    Metric::new("memory", Unit::Bytes),
    Metric::new("reads kept", Unit::Percent),
    Metric::new("updates", Unit::PerSecond),
];
const BARRIER: &[Metric] = &[Metric::new("barrier", Unit::Nanoseconds)];

/// The suite.
pub static SCENES: Scenes = Scenes {
    bench: "update",
    bases: &["quiescence"],
    groups: &[
        ("update", "The loop itself, without a reader and beside one"),
        ("tail", "What the loop does to a reader: 64 reads at a time"),
        ("hash", "A hash table with 1,000 keys; 99, 90 and 50 % searches"),
        ("call", "Queueing a callback"),
        ("memory", "Memory for an object that waits"),
        ("stall", "A reader that stays in its section"),
        ("barrier", "Waiting for one callback"),
    ],
    all: &[
        scene("update/no-reader", "updates, no reader", UPDATE, What::Update(0)),
        scene("update/1-reader", "updates, one busy reader", UPDATE, What::Update(1)),
        scene("tail/1-updater", "64 reads beside one updater", TAIL, What::Tail),
        scene("hash/99", "hash table, 99 % searches", HASH, What::Hash(99)),
        scene("hash/90", "hash table, 90 % searches", HASH, What::Hash(90)),
        scene("hash/50", "hash table, 50 % searches", HASH, What::Hash(50)),
        scene("call/enqueue", "queueing a callback of two words", CALL, What::Call),
        scene("memory/waiting", "memory over the object that waits", MEMORY, What::Memory),
        scene("stall/1-reader", "a reader stalls, an updater does not", STALL, What::Stall),
        scene("barrier/1-callback", "barrier after one callback", BARRIER, What::Barrier),
    ],
};
