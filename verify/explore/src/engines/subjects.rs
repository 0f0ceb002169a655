//! Which engines are explored, on which CPUs, and what must come of leaving out each of their
//! steps.

use core::hash::Hash;

use grace::Sequence;
use grace::steps::{Intact, Steps, Without};
use simulate::kernel::on_demand::{self, OnDemand};
use simulate::kernel::poll::{self, Global, PerCpu};
use simulate::kernel::token::{Published, Relay, published, v2};
use simulate::kernel::tree::{self, Options, Tree, Variant};
use simulate::kernel::{Engine, Start, tick};

use super::cpus::{Around, Cpus};
use crate::explore::{Verdict, run};

/// An engine, and what is known of it.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Short and unique.
    pub name: &'static str,
    /// The steps that it can leave out, as it lists them.
    pub steps: &'static [&'static [&'static str]],
    /// CPUs on which every state is looked at in seconds.
    pub quick: &'static [Cpus],
    /// On which it takes minutes.
    pub exhaustive: &'static [Cpus],
    /// On which it gets stuck, because it needs what these CPUs lack.
    pub stuck_on: &'static [(Cpus, &'static str)],
    /// What comes of each step that is left out.
    pub mutants: &'static [Expected],
    explore: fn(Cpus, Option<&'static str>, usize) -> Verdict,
}

/// What must come of leaving out a step.
#[derive(Clone, Copy, Debug)]
pub struct Expected {
    /// The step.
    pub step: &'static str,
    /// What must come of it.
    pub finding: Finding,
    /// The CPUs on which it does.
    pub on: Cpus,
}

/// What comes of a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    /// Something ends before a section that it must wait for.
    Unsafe,
    /// From some state on callbacks never run, or the engine never rests.
    Stuck,
    /// Nothing. The reason says what the step is there for.
    Harmless(&'static str),
}

impl Subject {
    /// Explores every state on these CPUs, at most `limit` of them, possibly without one
    /// step.
    pub fn explore(&self, on: Cpus, step: Option<&'static str>, limit: usize) -> Verdict {
        (self.explore)(on, step, limit)
    }
}

/// Numbers wrap at once, and counters come round at every second quiescent state.
const START: Start = Start { number: u32::MAX, counter_bits: 1 };

fn around(engine: impl Engine + Clone + Hash, on: Cpus, limit: usize) -> Verdict {
    run(&Around { engine, cpus: on }, limit)
}

/// A function that explores what `$make` makes, with all steps or without one.
macro_rules! explorer {
    ($make:expr) => {
        |on, step, limit| match step {
            None => around($make(on, Intact), on, limit),
            Some(step) => around($make(on, Without(step)), on, limit),
        }
    };
}

fn global<S: Steps>(on: Cpus, steps: S) -> Global<S> {
    Global::with(on.callbacks.len(), START, steps)
}

fn per_cpu<S: Steps>(on: Cpus, steps: S) -> PerCpu<S> {
    PerCpu::with(on.callbacks.len(), START, steps)
}

fn ltimer<S: Steps>(on: Cpus, steps: S) -> tick::Tick<S> {
    tick::Tick::with(on.callbacks.len(), START, steps)
}

fn ring<S: Steps>(on: Cpus, steps: S) -> Published<S> {
    Published::with(on.callbacks.len(), START, steps)
}

/// Two CPUs to a segment, so that three make two segments.
fn relay<S: Steps>(on: Cpus, steps: S) -> Relay<S> {
    let parameters = v2::Parameters { segment: 2, rest_jiffies_max: 1 };
    Relay::with(on.callbacks.len(), parameters, START, steps)
}

/// One callback at a time, and few different ages.
const FEW_AGES: on_demand::Parameters = on_demand::Parameters {
    callbacks_at_once_min: 1,
    back_off_jiffies: 1,
    force_after_jiffies: 1,
    ..on_demand::Parameters::DEFAULT
};

fn on_demand<S: Steps>(on: Cpus, steps: S) -> OnDemand<S> {
    OnDemand::with(on.callbacks.len(), FEW_AGES, START, steps)
}

/// With a limit that two callbacks are near to.
fn on_demand_near_limit<S: Steps>(on: Cpus, steps: S) -> OnDemand<S> {
    let parameters = on_demand::Parameters { backlog_objects_max: 2, ..FEW_AGES };
    OnDemand::with(on.callbacks.len(), parameters, START, steps)
}

/// A CPU to a leaf, two children to a node, one callback at a time, and few different ages.
fn tree<S: Steps>(variant: Variant, on: Cpus, steps: S) -> Tree<S> {
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
    Tree::starting_at(before_the_wrap, options, cpus, steps).with_tickless(tickless)
}

const ONE: Cpus = Cpus::new(&[1, 0]);
const TWO: Cpus = Cpus::new(&[2, 0]);
const FROM_LAST: Cpus = Cpus::new(&[0, 1]);
const ONE_EACH: Cpus = Cpus::new(&[1, 1]);
const TWO_EACH: Cpus = Cpus::new(&[2, 2]);
const ONE_OF_THREE: Cpus = Cpus::new(&[1, 0, 0]);
const THREE: Cpus = Cpus::new(&[1, 1, 1]);

const fn is_unsafe(step: &'static str, on: Cpus) -> Expected {
    Expected { step, finding: Finding::Unsafe, on }
}

const fn is_stuck(step: &'static str, on: Cpus) -> Expected {
    Expected { step, finding: Finding::Stuck, on }
}

const fn is_harmless(step: &'static str, on: Cpus, reason: &'static str) -> Expected {
    Expected { step, finding: Finding::Harmless(reason), on }
}

/// Why forcing is not needed here: CPUs that are awake pass through their schedulers some
/// time.
const ONLY_SOONER: &str = "quiescent states come without it, later";
/// Why no other thread need look.
const TIMER: &str = "the timer looks too, later";
/// Why a grace period that waits for sleepers ends: they count as quiescent wherever it looks.
const LOOKED_AT: &str = "a look finds them quiescent; it saves the look";

/// What the limit of memory is there for.
const LESS_HASTE: &str = "callbacks run without it, later; more of them wait meanwhile";

/// What rcu_ltimer lives on.
const REPORTS_ON_TICKS: &str = "a CPU in the kernel reports, and runs callbacks, on its ticks";
/// A CPU that is awake learns on its tick that a grace period has ended; if it has callbacks
/// and no ticks, it does when it goes to sleep, or ticks again. Linux leaves the tick on there.
const RUNS_ON_TICKS: &str = "a CPU that is awake notices on its ticks that its callbacks can run";

/// Both forms of `poll`, with which CPUs find what.
const POLL: &[Expected] = &[
    is_unsafe("snapshot", ONE_EACH),
    is_unsafe("wait-for-all-cpus", ONE_EACH),
    is_unsafe("wait-for-itself", ONE_EACH),
    is_unsafe("separate-lists", TWO),
    is_stuck("start-next", TWO),
    is_stuck("look-again", ONE_EACH),
    is_stuck("look-after-own-switch", ONE_EACH),
    is_unsafe("return-from-eqs", ONE_EACH),
    is_harmless("force", ONE_EACH, ONLY_SOONER),
    is_harmless("pass-over-eqs", ONE_EACH, LOOKED_AT),
];

const TICK: &[Expected] = &[
    is_unsafe("snapshot", ONE_EACH),
    is_unsafe("wait-for-all-cpus", ONE_EACH),
    is_unsafe("batch-after-current", ONE_EACH),
    is_unsafe("separate-lists", TWO),
    is_stuck("start-next", ONE_EACH),
    is_stuck("pass-over-eqs", ONE_EACH),
    is_stuck("report-on-entering-eqs", ONE_EACH),
    is_unsafe("return-from-eqs", ONE_EACH),
    is_stuck("raise-sleepers", ONE_EACH),
];

const PUBLISHED: &[Expected] = &[
    is_unsafe("wait-for-successor", ONE_EACH),
    // Of two, a CPU and its successor are all there are.
    is_unsafe("wait-for-circuit", ONE_OF_THREE),
    is_unsafe("separate-batches", ONE_EACH),
    is_stuck("count-pending", ONE_EACH),
    is_stuck("wake-sleepers", ONE_EACH),
    is_harmless("hop-when-idle", ONE_EACH, ONLY_SOONER),
];

const RELAY: &[Expected] = &[
    is_unsafe("wait-for-predecessor", ONE_EACH),
    is_unsafe("only-when-quiescent", ONE_EACH),
    is_unsafe("wait-for-all-segments", ONE_OF_THREE),
    is_unsafe("wait-for-next-number", ONE_EACH),
    is_unsafe("look-upstream-on-return", ONE_EACH),
    is_unsafe("return-from-eqs", ONE_EACH),
    is_stuck("follow-by-timer", ONE_EACH),
    is_stuck("raise-sleepers", ONE_EACH),
    is_harmless("nudge", ONE_EACH, ONLY_SOONER),
    is_harmless("look-on-tick", ONE_EACH, TIMER),
    is_harmless("follow-on-tick", ONE_EACH, TIMER),
    is_harmless("hand-over", ONE_EACH, TIMER),
    is_harmless("pass-on-return", ONE_EACH, "the next quiescent state passes it on"),
];

const ON_DEMAND: &[Expected] = &[
    is_unsafe("snapshot", ONE),
    is_unsafe("wait-for-all-cpus", ONE),
    // In the background it begins by the timer, which interrupts no section.
    is_unsafe("wait-for-itself", ONE.urgent()),
    is_unsafe("wait-for-next-number", TWO),
    is_unsafe("return-from-eqs", ONE),
    is_stuck("begin-on-demand", ONE),
    is_stuck("start-next", TWO),
    is_stuck("look-by-timer", ONE),
    is_stuck("raise-sleepers", ONE),
    is_stuck("run-the-rest", TWO),
    is_harmless("force", ONE.urgent(), ONLY_SOONER),
    is_harmless("look-on-tick", ONE.urgent(), TIMER),
    is_harmless("hand-over", ONE.urgent(), TIMER),
    is_harmless("look-again", ONE.urgent(), TIMER),
    is_harmless("report-when-forced", ONE.urgent(), TIMER),
    is_harmless("raise-waiters", ONE.urgent(), "those awake tick"),
    is_harmless("pass-over-eqs", ONE.urgent(), LOOKED_AT),
    // And with the limit near: see below.
    is_harmless("expedite-near-limit", ONE.urgent(), LESS_HASTE),
];

const ON_DEMAND_NEAR_LIMIT: &[Expected] =
    &[is_harmless("expedite-near-limit", TWO.awake(), LESS_HASTE)];

const TREE: &[Expected] = &[
    is_unsafe("full-grace-period", ONE_EACH.awake()),
    is_unsafe("forget-earlier-quiescent-states", TWO.awake()),
    is_unsafe("wait-for-siblings", ONE),
    is_unsafe("wait-for-own-grace-period", ONE),
    is_unsafe("take-snapshot", ONE),
    is_unsafe("leave-extended-quiescent-state", ONE),
    is_stuck("scan-again", ONE),
    is_stuck("wake-those-without-ticks", ONE),
    is_stuck("report-at-tick", ONE),
    is_harmless("remember-requests", ONE_EACH.awake(), "who still waits at the end asks again"),
];

const TREE_STEPS: &[&[&str]] = &[tree::STEPS, tree::STEPS_FOR_SPEED];

/// Every engine. The variants of Tree RCU differ in what they do about holdouts, and share their
/// steps, which are left out of the first.
pub const SUBJECTS: &[Subject] = &[
    Subject {
        name: "poll-global",
        steps: &[poll::STEPS, poll::STEPS_FOR_SPEED],
        quick: &[TWO, ONE_EACH, ONE_OF_THREE, FROM_LAST.last_tickless()],
        exhaustive: &[TWO_EACH],
        stuck_on: &[],
        mutants: POLL,
        explore: explorer!(global),
    },
    Subject {
        name: "poll-per-cpu",
        steps: &[poll::STEPS, poll::STEPS_FOR_SPEED],
        quick: &[TWO, ONE_EACH, ONE_OF_THREE, FROM_LAST.last_tickless()],
        exhaustive: &[TWO_EACH],
        stuck_on: &[],
        mutants: POLL,
        explore: explorer!(per_cpu),
    },
    Subject {
        name: "tick",
        steps: &[tick::STEPS, tick::STEPS_FOR_SPEED],
        quick: &[TWO, ONE_EACH, ONE_OF_THREE],
        exhaustive: &[TWO_EACH],
        stuck_on: &[(ONE.awake().last_tickless(), REPORTS_ON_TICKS)],
        mutants: TICK,
        explore: explorer!(ltimer),
    },
    Subject {
        name: "token-published",
        steps: &[published::STEPS, published::STEPS_FOR_SPEED],
        quick: &[TWO, ONE_EACH, TWO_EACH, ONE_OF_THREE, FROM_LAST.last_tickless()],
        exhaustive: &[THREE],
        stuck_on: &[],
        mutants: PUBLISHED,
        explore: explorer!(ring),
    },
    Subject {
        name: "token-relay",
        steps: &[v2::STEPS, v2::STEPS_FOR_SPEED],
        quick: &[TWO, ONE_EACH, ONE_OF_THREE, ONE.urgent(), ONE.last_tickless()],
        exhaustive: &[TWO_EACH, ONE_EACH.urgent()],
        stuck_on: &[(FROM_LAST.awake().last_tickless(), RUNS_ON_TICKS)],
        mutants: RELAY,
        explore: explorer!(relay),
    },
    Subject {
        name: "on-demand",
        steps: &[on_demand::STEPS, on_demand::STEPS_FOR_SPEED],
        quick: &[
            TWO.awake(),
            ONE.urgent(),
            ONE_EACH.awake(),
            ONE_OF_THREE.awake(),
            ONE.last_tickless(),
        ],
        exhaustive: &[
            FROM_LAST.last_tickless(),
            TWO,
            ONE_EACH,
            ONE_EACH.urgent().awake(),
            ONE_OF_THREE,
        ],
        stuck_on: &[(FROM_LAST.awake().last_tickless(), RUNS_ON_TICKS)],
        mutants: ON_DEMAND,
        explore: explorer!(on_demand),
    },
    Subject {
        name: "on-demand-near-limit",
        steps: &[&[], &["expedite-near-limit"]],
        quick: &[TWO.awake()],
        exhaustive: &[TWO, ONE_EACH, TWO.urgent()],
        stuck_on: &[],
        mutants: ON_DEMAND_NEAR_LIMIT,
        explore: explorer!(on_demand_near_limit),
    },
    Subject {
        name: "tree-3.15",
        steps: TREE_STEPS,
        quick: &[ONE, ONE_EACH.awake(), TWO.awake(), FROM_LAST.last_tickless()],
        exhaustive: &[ONE_EACH, TWO, ONE_OF_THREE.awake()],
        stuck_on: &[],
        mutants: TREE,
        explore: explorer!(|on, steps| tree(Variant::V3_15, on, steps)),
    },
    Subject {
        name: "tree-v0",
        steps: &[],
        quick: &[ONE.awake()],
        exhaustive: &[ONE, ONE_EACH.awake(), ONE_OF_THREE.awake()],
        stuck_on: &[],
        mutants: &[],
        explore: explorer!(|on, steps| tree(Variant::V0 { period: 2 }, on, steps)),
    },
    Subject {
        name: "tree-v1",
        steps: &[],
        quick: &[ONE.awake(), FROM_LAST.awake().last_tickless()],
        exhaustive: &[ONE, ONE_EACH.awake(), ONE_OF_THREE.awake()],
        stuck_on: &[],
        mutants: &[],
        explore: explorer!(|on, steps| tree(Variant::V1 { flag_after_jiffies: 1 }, on, steps)),
    },
    Subject {
        name: "tree-v2",
        steps: &[],
        quick: &[ONE.awake(), FROM_LAST.awake().last_tickless()],
        exhaustive: &[ONE, ONE_EACH.awake(), ONE_OF_THREE.awake()],
        stuck_on: &[],
        mutants: &[],
        explore: explorer!(|on, steps| tree(Variant::V2 { sched_qs_jiffies: 1 }, on, steps)),
    },
    Subject {
        name: "tree-today",
        steps: &[],
        quick: &[ONE.awake(), FROM_LAST.awake().last_tickless()],
        exhaustive: &[ONE, ONE.last_tickless(), ONE_EACH.awake(), ONE_OF_THREE.awake()],
        stuck_on: &[],
        mutants: &[],
        explore: explorer!(|on, steps| tree(Variant::Today, on, steps)),
    },
];
