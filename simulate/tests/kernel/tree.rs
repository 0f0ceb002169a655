//! Tree RCU, driven at random: no callback runs while a section of before it is open, every
//! callback runs in the end, and a step left out is noticed.

use grace::Sequence;
use grace::steps::{Intact, Steps, Without};
use proptest::prelude::*;
use simulate::kernel::tree::{Options, STEPS, STEPS_FOR_SPEED, STEPS_OF_SAFETY, Tree, Variant};

use crate::world::{Harm, run_staying};

const VARIANTS: [Variant; 5] = [
    Variant::V3_15,
    Variant::V0 { period: 2 },
    Variant::V1 { flag_after_jiffies: 2 },
    Variant::V2 { sched_qs_jiffies: 2 },
    Variant::Today,
];

/// Limits so small that a few dozen events get at all of them.
fn small(variant: Variant, qhimark: u64) -> Options {
    Options {
        leaf_fanout: 2,
        fanout: 2,
        first_fqs_jiffies: 1,
        next_fqs_jiffies: 1,
        sched_qs_jiffies: 2,
        stall_jiffies: 12,
        blimit: 2,
        ready_shift: 2,
        qhimark,
        qlowmark: 1,
        qovld: 2 * qhimark,
        ..Options::new(variant, 100, 5)
    }
}

/// What may happen to a CPU, in `world`; callbacks that queue others are more than that.
const EVENTS: u8 = 24;

/// Runs a schedule over `cpus` CPUs, the last `tickless` of which have no ticks, from right before
/// the counter of grace periods wraps. In the end CPUs stay in the kernel, so that only what a
/// variant does about holdouts ends a grace period.
fn run<S: Steps>(
    options: Options,
    cpus: usize,
    tickless: usize,
    steps: S,
    schedule: &[(u8, u8)],
) -> Result<usize, Harm> {
    let start = Sequence::after((u64::MAX >> 1) - 2);
    let tickless = cpus - tickless.min(cpus)..cpus;
    let tree = Tree::starting_at(start, options, cpus, steps).with_tickless(tickless.clone());
    run_staying(tree, cpus, tickless, schedule)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_500))]

    #[test]
    fn nothing_runs_early_and_everything_runs(
        variant in 0..VARIANTS.len(),
        cpus in 1..8_usize,
        tickless in 0..4_usize,
        qhimark in 2..20_u64,
        schedule in prop::collection::vec((any::<u8>(), 0..EVENTS), 0..400),
    ) {
        let options = small(VARIANTS[variant], qhimark);
        let outcome = run(options, cpus, tickless, Intact, &schedule);
        prop_assert!(outcome.is_ok(), "{outcome:?}");
    }
}

/// The same with a seed: 300 events.
fn run_seed(seed: u64, steps: impl Steps) -> Result<usize, Harm> {
    let variant = VARIANTS[seed as usize % VARIANTS.len()];
    let tickless = (seed / 5 % 3) as usize;
    let mut state = seed;
    let schedule: [_; 300] = std::array::from_fn(|_| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((state >> 40) as u8, (state >> 48) as u8 % EVENTS)
    });
    run(small(variant, 4 + seed % 7), 5, tickless, steps, &schedule)
}

/// Runs a mutant with many seeds. Returns what it was caught at.
fn caught(step: &'static str) -> Option<&'static str> {
    (0..3_000).find_map(|seed| match run_seed(seed, Without(step)) {
        Err(Harm::Fault(_)) => Some("safety"),
        Err(Harm::Stuck) => Some("progress"),
        Ok(_) => None,
    })
}

#[test]
fn every_step_left_out_is_noticed() {
    for (index, step) in STEPS.iter().enumerate() {
        let harm = if index < STEPS_OF_SAFETY { "safety" } else { "progress" };
        assert_eq!(caught(step), Some(harm), "without {step}");
    }
}

#[test]
fn a_step_for_speed_left_out_is_slower_and_nothing_else() {
    let rounds = |steps| (0..500).map(|seed| run_seed(seed, steps).unwrap()).sum::<usize>();
    let intact = rounds(Without("no such step"));
    for step in STEPS_FOR_SPEED {
        assert_eq!(caught(step), None);
        assert!(rounds(Without(step)) > intact, "without {step}");
    }
}

#[test]
fn a_step_that_does_not_exist_is_not_missed() {
    assert_eq!(caught("no such step"), None);
}
