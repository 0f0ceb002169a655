//! `rcu bench percpu`: what is done on the slot of the processor. Reads that no grace period waits for, counters,
//! references, and locks that are cheap to read.

use rivals::bench::{counted, counters, sections, snapshots};

use super::loops::Threads;
use super::rounds::{Metric, Unit};
use super::scenes::{self, Group, Scene, What, metric};
use super::{Bench, Options};
use crate::exit::Failure;

/// The arguments of `rcu bench percpu`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct PercpuArgs {
    /// Measure only these [default: all]
    #[arg(long = "case", value_name = "A,B", value_parser = scenes::parser(&GROUPS), value_delimiter = ',')]
    cases: Vec<String>,
    #[command(flatten)]
    pub(super) options: Options,
}

/// What can be asked for.
const GROUPS: [Group; 7] = [
    ("snapshot", "Four words that are read whole, with and without a writer"),
    ("arc", "Getting an Arc that can be replaced, and giving it back"),
    ("counter", "Adding one to a counter"),
    ("lock", "Taking a lock for reading, and giving it back"),
    ("bigref", "Getting a reference, and giving it back"),
    ("grace", "Grace periods beside six readers with sections of 1 µs"),
    ("store", "Replacing an Arc that 200 threads have loaded"),
];

const SNAPSHOT: &[Metric] = &[metric("read", Unit::Nanoseconds)];
const ARC: &[Metric] = &[metric("load", Unit::Nanoseconds)];
const COUNTER: &[Metric] = &[metric("add", Unit::Nanoseconds)];
const LOCK: &[Metric] = &[metric("pair", Unit::Nanoseconds)];
const GRACE: &[Metric] = &[metric("p50", Unit::Nanoseconds), metric("p99", Unit::Nanoseconds)];
const STORE: &[Metric] = &[metric("store", Unit::Nanoseconds)];

const ONE: Threads = Threads::Same(1);
const TWO: Threads = Threads::Same(2);

const fn scene(
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    what: What,
) -> Scene {
    Scene { id, title, metrics, what }
}

/// Stores last: arc-swap looks at every thread that it has ever seen.
static SCENES: [Scene; 13] = [
    scene("snapshot/1-thread", "four words, one thread", SNAPSHOT, snapshot(ONE)),
    scene("snapshot/2-threads", "four words, two threads", SNAPSHOT, snapshot(TWO)),
    scene(
        "snapshot/1-writer",
        "four words, beside a write every 10 µs",
        SNAPSHOT,
        snapshot(Threads::BesideWriter),
    ),
    scene("arc/1-thread", "an Arc and back, one thread", ARC, What::Loop(counted::arcs, ONE)),
    scene("arc/2-threads", "an Arc and back, two threads", ARC, What::Loop(counted::arcs, TWO)),
    scene("counter/1-thread", "add one, one thread", COUNTER, What::Loop(counters::rivals, ONE)),
    scene("counter/2-threads", "add one, two threads", COUNTER, What::Loop(counters::rivals, TWO)),
    scene("lock/1-thread", "read lock and unlock, one thread", LOCK, lock(ONE)),
    scene("lock/2-threads", "read lock and unlock, two threads", LOCK, lock(TWO)),
    scene("bigref/1-thread", "get and put, one thread", LOCK, bigref(ONE)),
    scene("bigref/2-threads", "get and put, two threads", LOCK, bigref(TWO)),
    scene("grace/6-readers", "6 readers with sections of 1 µs", GRACE, What::Grace(6)),
    scene("store/200-threads", "store, 200 threads have loaded", STORE, What::Store(200)),
];

const fn snapshot(threads: Threads) -> What {
    What::Loop(snapshots::rivals, threads)
}

const fn lock(threads: Threads) -> What {
    What::Loop(sections::local, threads)
}

const fn bigref(threads: Threads) -> What {
    What::Loop(counted::references, threads)
}

pub(super) fn prepare(args: &PercpuArgs) -> Result<Bench, Failure> {
    scenes::prepare("percpu", &SCENES, &args.cases, &args.options)
}

/// What a case measures, and of whom.
#[cfg(test)]
pub(super) fn known(case: &str) -> Option<(&'static [Metric], Vec<&'static str>)> {
    SCENES.iter().find(|scene| scene.id == case).map(Scene::known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::scenes::tests::{all_are_measured, groups_add_up};

    #[test]
    fn every_rival_of_every_case_gives_a_figure_for_each_metric() {
        all_are_measured(&SCENES);
    }

    #[test]
    fn all_cases_are_measured_unless_some_are_named() {
        groups_add_up(&SCENES, &GROUPS);
    }
}
