//! Engines of kernels under random schedules: safe, sure to finish, and each step needed.

mod behaviour;
mod recorder;
mod ring;
mod tree;
mod tree_variants;
mod world;

use grace::steps::{Intact, Steps, Without};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use simulate::kernel::on_demand::{self, OnDemand};
use simulate::kernel::token::{Published, Relay, published, v2};
use simulate::kernel::{Engine, Start, poll, tick};
use world::run;

/// Numbers right before their wrap, and counters so narrow that they come round again and again;
/// not so narrow that they do so from one look to the next, each time.
const WRAPPING: Start = Start { number: u32::MAX - 1, counter_bits: 4 };

const CPUS_MAX: usize = 8;

fn schedule() -> impl Strategy<Value = (usize, Vec<(u8, u8)>)> {
    (1..=CPUS_MAX, prop::collection::vec(any::<(u8, u8)>(), 0..200))
}

/// Whether random schedules find nothing wrong with an engine.
fn holds<E: Engine>(make: impl Fn(usize) -> E) {
    let config = ProptestConfig::default();
    let cases = config.cases.saturating_mul(8);
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..config });
    let outcome = runner.run(&schedule(), |(cpus, schedule)| {
        run(make(cpus), cpus, &schedule).map_err(TestCaseError::fail)
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

/// Schedules to catch a mutant with, before it counts as missed. Always the same ones.
const SCHEDULES_MAX: usize = 40_000;

/// Whether each mutant is caught. An engine without a step that is only for speed must hold.
fn each_step_is_needed<E: Engine>(
    steps: &[&'static str],
    steps_for_speed: &[&'static str],
    make: impl Fn(usize, Without) -> E,
) {
    let missed: Vec<_> = steps
        .iter()
        .filter(|&&step| {
            let mut runner = TestRunner::deterministic();
            let caught = (0..SCHEDULES_MAX).find(|_| {
                let (cpus, schedule) = schedule().new_tree(&mut runner).unwrap().current();
                run(make(cpus, Without(step)), cpus, &schedule).is_err()
            });
            println!("{step}: caught by schedule {caught:?}");
            caught.is_none()
        })
        .collect();
    assert!(missed.is_empty(), "nobody noticed that these are left out: {missed:?}");
    for step in steps_for_speed {
        println!("without {step}:");
        holds(|cpus| make(cpus, Without(step)));
    }
}

/// Segments of three, so that there are several, and a short one.
const SHORT: v2::Parameters = v2::Parameters { segment: 3, rest_jiffies_max: 1 };

/// Few callbacks at once, and limits that schedules come near to.
const FEW: on_demand::Parameters = on_demand::Parameters {
    callbacks_at_once_min: 2,
    back_off_jiffies: 3,
    force_after_jiffies: 4,
    backlog_objects_max: 20,
    ..on_demand::Parameters::DEFAULT
};

/// An engine as it is used, and a small one whose numbers wrap: both hold, and of the small one
/// each step is needed.
macro_rules! engine {
    ($name:ident, $engine:ty, $steps:ident $(, $usual:expr, $small:expr)?) => {
        mod $name {
            use super::*;

            fn small<S: Steps>(cpus: usize, steps: S) -> $engine {
                <$engine>::with(cpus, $($small,)? WRAPPING, steps)
            }

            #[test]
            fn holds() {
                super::holds(|cpus| {
                    type S = Intact; // of `$engine`
                    <$engine>::with(cpus, $($usual,)? Start::default(), Intact)
                });
                super::holds(|cpus| small(cpus, Intact));
            }

            #[test]
            fn needs_each_step() {
                each_step_is_needed($steps::STEPS, $steps::STEPS_FOR_SPEED, small);
            }
        }
    };
}

engine!(poll_with_one_list, poll::Global<S>, poll);
engine!(poll_with_a_list_for_each, poll::PerCpu<S>, poll);
engine!(by_the_tick, tick::Tick<S>, tick);
engine!(the_published_ring, Published<S>, published);
engine!(the_relay, Relay<S>, v2, v2::Parameters::default(), SHORT);
engine!(on_demand_alone, OnDemand<S>, on_demand, on_demand::Parameters::DEFAULT, FEW);

/// Its own tests, with mutants, are in [`tree`].
#[test]
fn the_tree_holds() {
    use simulate::kernel::tree::{Options, Tree, Variant};
    for variant in
        [Variant::V3_15, Variant::v0(), Variant::v1(250), Variant::v2(250), Variant::Today]
    {
        let options =
            |cpus| Options { leaf_fanout: 2, fanout: 2, ..Options::new(variant, 250, cpus) };
        holds(|cpus| Tree::new(options(cpus), cpus));
    }
}
