//! Who does what.

use grace::srcu::{AdaptiveDelay, AnyDelay, Published};

/// A reader: sections one after the other, each of which reads the published object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Task {
    /// How many.
    pub sections: u8,
    /// How often it may migrate.
    pub migrations: u8,
    /// The CPU it begins on: 0 or 1.
    pub cpu: u8,
}

/// Never waits.
const SPINS: AnyDelay = AnyDelay::Published(Published::V5_18);
/// Waits after the first run, with counts.
const COUNTS: AnyDelay = AnyDelay::Published(Published::V5_19_RC1);
/// Naps; few lengths of naps are as good as many.
const NAPS: AnyDelay = AnyDelay::Adaptive(AdaptiveDelay {
    nap_us: 1_000,
    wait_jiffies_max: 1,
    ..AdaptiveDelay::at(1_000)
});

/// A scenario.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scenario {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub about: &'static str,
    /// The readers, at most three.
    pub readers: Vec<Task>,
    /// Updates that the worker's CPU makes: publish, a grace period, free.
    pub updates: u8,
    /// Whether another CPU makes one more, at any time.
    pub other_updater: bool,
    /// The delay function.
    pub delay: AnyDelay,
}

const STAYS: Task = Task { sections: 1, migrations: 0, cpu: 0 };
const MIGRATES: Task = Task { migrations: 1, ..STAYS };

/// All scenarios.
pub fn scenarios() -> Vec<Scenario> {
    let base = Scenario {
        name: "one-reader",
        about: "a section against a grace period",
        readers: vec![STAYS],
        updates: 1,
        other_updater: false,
        delay: SPINS,
    };
    vec![
        base.clone(),
        Scenario {
            name: "straggler",
            about: "a section against two grace periods: the index may be looked up before both",
            updates: 2,
            ..base.clone()
        },
        Scenario {
            name: "straggler-of-three",
            about: "a section against three grace periods",
            updates: 3,
            ..base.clone()
        },
        Scenario {
            name: "migrating",
            about: "a section that begins on one CPU and may end on the other",
            readers: vec![MIGRATES],
            updates: 2,
            ..base.clone()
        },
        Scenario {
            name: "two-sections",
            about: "two sections in a row, which may be in different indexes",
            readers: vec![Task { sections: 2, ..STAYS }],
            updates: 2,
            ..base.clone()
        },
        Scenario {
            name: "two-readers",
            about: "two sections on two CPUs",
            readers: vec![STAYS, Task { cpu: 1, ..STAYS }],
            ..base.clone()
        },
        Scenario {
            name: "crossing",
            about: "two sections, one of which migrates past the sum of the counts",
            readers: vec![MIGRATES, Task { cpu: 1, ..STAYS }],
            ..base.clone()
        },
        Scenario {
            name: "two-updaters",
            about: "a request in mid grace period",
            other_updater: true,
            ..base.clone()
        },
        Scenario {
            name: "counting",
            about: "as straggler, with a worker that waits and counts",
            updates: 2,
            delay: COUNTS,
            ..base.clone()
        },
        Scenario {
            name: "napping",
            about: "as straggler, with a worker that naps",
            updates: 2,
            delay: NAPS,
            ..base
        },
    ]
}

/// The scenario of this name.
pub fn named(name: &str) -> Option<Scenario> {
    scenarios().into_iter().find(|scenario| scenario.name == name)
}
