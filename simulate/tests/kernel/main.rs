//! Engines of kernels under random schedules: safe, sure to finish, and each step needed.

mod behaviour;
mod recorder;
mod ring;
mod world;

use grace::steps::{Intact, Steps, Without};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;
use simulate::kernel::on_demand::{self, OnDemand};
use simulate::kernel::token::{Published, Relay, published, v2};
use simulate::kernel::{Engine, Start, poll, tick, tree};
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

fn global<S: Steps>(cpus: usize, steps: S) -> poll::Global<S> {
    poll::Global::with(cpus, WRAPPING, steps)
}

fn per_cpu<S: Steps>(cpus: usize, steps: S) -> poll::PerCpu<S> {
    poll::PerCpu::with(cpus, WRAPPING, steps)
}

fn ltimer<S: Steps>(cpus: usize, steps: S) -> tick::Tick<S> {
    tick::Tick::with(cpus, WRAPPING, steps)
}

fn ring<S: Steps>(cpus: usize, steps: S) -> Published<S> {
    Published::with(cpus, WRAPPING, steps)
}

/// Segments of three, so that there are several, and a short one.
fn relay<S: Steps>(cpus: usize, steps: S) -> Relay<S> {
    let parameters = v2::Parameters { segment: 3, rest_jiffies_max: 1 };
    Relay::with(cpus, parameters, WRAPPING, steps)
}

/// Few callbacks at once, and limits that schedules come near to.
fn on_demand<S: Steps>(cpus: usize, steps: S) -> OnDemand<S> {
    let parameters = on_demand::Parameters {
        callbacks_at_once_min: 2,
        back_off_jiffies: 3,
        force_after_jiffies: 4,
        backlog_objects_max: 20,
        ..on_demand::Parameters::DEFAULT
    };
    OnDemand::with(cpus, parameters, WRAPPING, steps)
}

#[test]
fn poll_with_one_list_holds() {
    holds(|cpus| poll::Global::with(cpus, Start::default(), Intact));
    holds(|cpus| global(cpus, Intact));
}

#[test]
fn poll_with_a_list_for_each_holds() {
    holds(|cpus| poll::PerCpu::with(cpus, Start::default(), Intact));
    holds(|cpus| per_cpu(cpus, Intact));
}

#[test]
fn tick_holds() {
    holds(|cpus| tick::Tick::with(cpus, Start::default(), Intact));
    holds(|cpus| ltimer(cpus, Intact));
}

#[test]
fn the_published_ring_holds() {
    holds(|cpus| Published::with(cpus, Start::default(), Intact));
    holds(|cpus| ring(cpus, Intact));
}

#[test]
fn the_relay_holds() {
    holds(|cpus| Relay::with(cpus, v2::Parameters::default(), Start::default(), Intact));
    holds(|cpus| relay(cpus, Intact));
}

#[test]
fn on_demand_holds() {
    let usual = on_demand::Parameters::DEFAULT;
    holds(|cpus| OnDemand::with(cpus, usual, Start::default(), Intact));
    holds(|cpus| on_demand(cpus, Intact));
}

/// Its own tests, with mutants, are in `tests/simulate/tree.rs`.
#[test]
fn the_tree_holds() {
    use tree::{Options, Tree, Variant};
    for variant in
        [Variant::V3_15, Variant::v0(), Variant::v1(250), Variant::v2(250), Variant::Today]
    {
        let options =
            |cpus| Options { leaf_fanout: 2, fanout: 2, ..Options::new(variant, 250, cpus) };
        holds(|cpus| Tree::new(options(cpus), cpus));
    }
}

#[test]
fn poll_with_one_list_needs_each_step() {
    each_step_is_needed(poll::STEPS, poll::STEPS_FOR_SPEED, global);
}

#[test]
fn poll_with_a_list_for_each_needs_each_step() {
    each_step_is_needed(poll::STEPS, poll::STEPS_FOR_SPEED, per_cpu);
}

#[test]
fn tick_needs_each_step() {
    each_step_is_needed(tick::STEPS, tick::STEPS_FOR_SPEED, ltimer);
}

#[test]
fn the_published_ring_needs_each_step() {
    each_step_is_needed(published::STEPS, published::STEPS_FOR_SPEED, ring);
}

#[test]
fn the_relay_needs_each_step() {
    each_step_is_needed(v2::STEPS, v2::STEPS_FOR_SPEED, relay);
}

#[test]
fn on_demand_needs_each_step() {
    each_step_is_needed(on_demand::STEPS, on_demand::STEPS_FOR_SPEED, on_demand);
}
