//! Which engines are explored, on which CPUs, and what must come of leaving out each of their
//! steps: `worlds/engines.toml`, read.

use core::hash::Hash;
use std::sync::LazyLock;

use grace::Sequence;
use grace::steps::{Intact, Steps, Without};
use kernel::engine::on_demand::{self, OnDemand};
use kernel::engine::tick::Tick;
use kernel::engine::token::{Published, Relay, v2};
use kernel::engine::tree::{Options, Tree, Variant};
use kernel::engine::{Engine, Start, poll};
use serde::Deserialize;
use simulate::Heap;

use super::cpus::{Around, Cpus};
use crate::explore::{Verdict, run};
use crate::harness::{self, Kind};

/// An engine, and what is known of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Subject {
    /// Short and unique.
    pub name: &'static str,
    /// CPUs on which every state is looked at in seconds.
    pub quick: Vec<Cpus>,
    /// On which it takes minutes.
    pub exhaustive: Vec<Cpus>,
}

/// What must come of leaving out a step.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expected {
    /// The names of the engines.
    pub of: Vec<&'static str>,
    /// The step; without one, the engine needs what these CPUs lack.
    pub step: Option<&'static str>,
    /// What must come of it.
    #[serde(default)]
    pub comes: Kind,
    /// The CPUs on which it does.
    pub on: Cpus,
    /// Why, or what the step is there for.
    pub why: Option<&'static str>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
struct Table {
    subject: Vec<Subject>,
    fault: Vec<Expected>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| harness::table!("engines"));

/// Every engine. The variants of Tree RCU differ in what they do about holdouts, and share their
/// steps, which are left out of the first.
pub fn subjects() -> &'static [Subject] {
    &TABLE.subject
}

/// What must come of each step that is left out, of whichever engine.
pub fn faults() -> &'static [Expected] {
    &TABLE.fault
}

impl Subject {
    /// What comes of each step of it that is left out.
    pub fn faults(&self) -> impl Iterator<Item = &'static Expected> {
        faults().iter().filter(|expected| expected.of.contains(&self.name))
    }

    /// Explores every state on these CPUs, at most `limit` of them, possibly without one
    /// step.
    pub fn explore(&self, on: &Cpus, step: Option<&'static str>, limit: usize) -> Verdict {
        match step {
            None => self.explore_with(Intact, on, limit),
            Some(step) => self.explore_with(Without(step), on, limit),
        }
    }

    fn explore_with<S: Steps>(&self, steps: S, on: &Cpus, limit: usize) -> Verdict {
        let cpus = on.callbacks.len();
        let tree = |variant| around(tree(variant, on, steps), on, limit);
        match self.name {
            "poll-global" => around(poll::Global::with(Heap(cpus), START, steps), on, limit),
            "poll-per-cpu" => around(poll::PerCpu::with(Heap(cpus), START, steps), on, limit),
            "tick" => around(Tick::with(Heap(cpus), START, steps), on, limit),
            "token-published" => around(Published::with(Heap(cpus), START, steps), on, limit),
            "token-relay" => around(Relay::with(Heap(cpus), IN_PAIRS, START, steps), on, limit),
            "on-demand" => around(OnDemand::with(Heap(cpus), FEW_AGES, START, steps), on, limit),
            "on-demand-near-limit" => {
                // Two callbacks are near to it.
                let parameters = on_demand::Parameters { backlog_objects_max: 2, ..FEW_AGES };
                around(OnDemand::with(Heap(cpus), parameters, START, steps), on, limit)
            }
            "tree-3.15" => tree(Variant::V3_15),
            "tree-v0" => tree(Variant::V0 { period: 2 }),
            "tree-v1" => tree(Variant::V1 { flag_after_jiffies: 1 }),
            "tree-v2" => tree(Variant::V2 { sched_qs_jiffies: 1 }),
            "tree-today" => tree(Variant::Today),
            name => panic!("there is no engine {name}"),
        }
    }
}

/// Numbers wrap at once, and counters come round at every second quiescent state.
const START: Start = Start { number: u32::MAX, counter_bits: 1 };

/// Two CPUs to a segment, so that three make two segments.
const IN_PAIRS: v2::Parameters = v2::Parameters { segment: 2, rest_jiffies_max: 1 };

/// One callback at a time, and few different ages.
const FEW_AGES: on_demand::Parameters = on_demand::Parameters {
    callbacks_at_once_min: 1,
    back_off_jiffies: 1,
    force_after_jiffies: 1,
    ..on_demand::Parameters::DEFAULT
};

fn around(engine: impl Engine + Clone + Hash, on: &Cpus, limit: usize) -> Verdict {
    run(&Around { engine, cpus: on }, limit)
}

/// A CPU to a leaf, two children to a node, one callback at a time, and few different ages.
fn tree<S: Steps>(variant: Variant, on: &Cpus, steps: S) -> Tree<Heap, S> {
    let is_today = variant == Variant::Today;
    let fqs_jiffies = if is_today { 2 } else { 5 };
    let options = Options {
        variant,
        leaf_fanout: 1,
        fanout: 2,
        first_fqs_jiffies: fqs_jiffies,
        next_fqs_jiffies: fqs_jiffies,
        sched_qs_jiffies: 1,
        stall_jiffies: if is_today { 6 } else { 0 },
        blimit: 1,
        ready_shift: 64,
        qhimark: 10,
        qlowmark: 1,
        qovld: 20,
    };
    let before_the_wrap = Sequence::after(u64::MAX >> 1);
    let cpus = on.callbacks.len();
    let tickless = (0..cpus).filter(|cpu| on.tickless & 1 << cpu != 0);
    Tree::starting_at(before_the_wrap, options, Heap(cpus), steps).with_tickless(tickless)
}
