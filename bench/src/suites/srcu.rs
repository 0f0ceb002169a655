//! `rcu bench srcu`: sleepable domains. What a section costs, a burst of grace periods, a reader
//! that stays, and memory.

use super::rounds::{Metric, Unit};
use super::scenes::{Scenes, Threads, What, scene};
use crate::cases::domains::Used;

const PAIR: &[Metric] = &[Metric::new("pair", Unit::Nanoseconds)];
const BOOT: &[Metric] = &[
    Metric::new("update", Unit::Nanoseconds),
    Metric::new("CPU", Unit::Nanoseconds),
    Metric::new("look-ups", Unit::PerSecond),
];
const BLOCKED: &[Metric] = &[
    Metric::new("CPU", Unit::Percent),
    Metric::new("stretch", Unit::Nanoseconds),
    Metric::new("sleeps", Unit::PerSecond),
    Metric::new("answer", Unit::Nanoseconds),
];
const MEMORY: &[Metric] = &[Metric::new("memory", Unit::Bytes)];

/// The suite.
pub static SCENES: Scenes = Scenes {
    bench: "srcu",
    bases: &["quiescence"],
    groups: &[
        ("pair", "Entering a section and leaving it"),
        ("boot", "A guest's boot: 9,000 expedited grace periods beside readers that come and go"),
        ("blocked", "A reader that stays in its section, and who waits for it"),
        ("domains", "Memory of a domain, by what was done with it"),
    ],
    all: &[
        scene("pair/1-thread", "enter and leave, one thread", PAIR, pair(1)),
        scene("pair/2-threads", "enter and leave, two threads", PAIR, pair(2)),
        scene("boot/1-reader", "a guest's boot, one reader", BOOT, What::Boot(1)),
        scene("boot/2-readers", "a guest's boot, two readers", BOOT, What::Boot(2)),
        scene("blocked/1-reader", "waiting for a reader that stays", BLOCKED, What::Blocked),
        scene("domains/unused", "a domain, not used", MEMORY, memory(Used::Never)),
        scene("domains/read", "a domain, read once", MEMORY, memory(Used::Read)),
        scene("domains/contended", "a domain, two readers", MEMORY, memory(Used::Contended)),
        scene("domains/waited", "the same, and a grace period", MEMORY, memory(Used::Waited)),
    ],
};

const fn pair(threads: usize) -> What {
    What::Loop(|rival| rival.sleepable, Threads::Same(threads))
}

const fn memory(used: Used) -> What {
    What::Domains(used)
}
