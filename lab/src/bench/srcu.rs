//! `rcu bench srcu`: sleepable domains. What a section costs, a burst of grace periods, a reader that stays, and
//! memory.

use rivals::bench::domains::Used;
use rivals::bench::sections;

use super::loops::Threads;
use super::rounds::{Metric, Unit};
use super::scenes::{Scenes, What, metric, scene};
use super::{Bench, Options};
use crate::exit::Failure;

/// The arguments of `rcu bench srcu`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SrcuArgs {
    /// Measure only these [default: all]
    #[arg(long = "case", value_name = "A,B", value_parser = SCENES.parser(), value_delimiter = ',')]
    cases: Vec<String>,
    #[command(flatten)]
    pub(super) options: Options,
}

const PAIR: &[Metric] = &[metric("pair", Unit::Nanoseconds)];
const BOOT: &[Metric] = &[
    metric("update", Unit::Nanoseconds),
    metric("CPU", Unit::Nanoseconds),
    metric("look-ups", Unit::PerSecond),
];
const BLOCKED: &[Metric] = &[
    metric("CPU", Unit::Percent),
    metric("stretch", Unit::Nanoseconds),
    metric("sleeps", Unit::PerSecond),
    metric("answer", Unit::Nanoseconds),
];
const MEMORY: &[Metric] = &[metric("memory", Unit::Bytes)];

pub(super) static SCENES: Scenes = Scenes {
    bench: "srcu",
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
    What::Loop(sections::sleepable, Threads::Same(threads))
}

const fn memory(used: Used) -> What {
    What::Domains(used)
}

pub(super) fn prepare(args: &SrcuArgs) -> Result<Bench, Failure> {
    SCENES.prepare(&args.cases, &args.options)
}
