//! `rcu bench srcu`: sleepable domains. What a section costs, a burst of grace periods, a reader that stays, and
//! memory.

use rivals::bench::domains::Used;
use rivals::bench::sections;

use super::loops::Threads;
use super::rounds::{Metric, Unit};
use super::scenes::{self, Group, Scene, What, metric};
use super::{Bench, Options};
use crate::exit::Failure;

/// The arguments of `rcu bench srcu`.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct SrcuArgs {
    /// Measure only these [default: all]
    #[arg(long = "case", value_name = "A,B", value_parser = scenes::parser(&GROUPS), value_delimiter = ',')]
    cases: Vec<String>,
    #[command(flatten)]
    pub(super) options: Options,
}

/// What can be asked for.
const GROUPS: [Group; 4] = [
    ("pair", "Entering a section and leaving it"),
    ("boot", "A guest's boot: 9,000 expedited grace periods beside readers that come and go"),
    ("blocked", "A reader that stays in its section, and who waits for it"),
    ("domains", "Memory of a domain, by what was done with it"),
];

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

const fn scene(
    id: &'static str,
    title: &'static str,
    metrics: &'static [Metric],
    what: What,
) -> Scene {
    Scene { id, title, metrics, what }
}

static SCENES: [Scene; 9] = [
    scene("pair/1-thread", "enter and leave, one thread", PAIR, pair(1)),
    scene("pair/2-threads", "enter and leave, two threads", PAIR, pair(2)),
    scene("boot/1-reader", "a guest's boot, one reader", BOOT, What::Boot(1)),
    scene("boot/2-readers", "a guest's boot, two readers", BOOT, What::Boot(2)),
    scene("blocked/1-reader", "waiting for a reader that stays", BLOCKED, What::Blocked),
    scene("domains/unused", "a domain, not used", MEMORY, What::Domains(Used::Never)),
    scene("domains/read", "a domain, read once", MEMORY, What::Domains(Used::Read)),
    scene("domains/contended", "a domain, two readers", MEMORY, What::Domains(Used::Contended)),
    scene("domains/waited", "the same, and a grace period", MEMORY, What::Domains(Used::Waited)),
];

const fn pair(threads: usize) -> What {
    What::Loop(sections::sleepable, Threads::Same(threads))
}

pub(super) fn prepare(args: &SrcuArgs) -> Result<Bench, Failure> {
    scenes::prepare("srcu", &SCENES, &args.cases, &args.options)
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
