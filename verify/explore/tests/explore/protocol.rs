//! The protocol as it stands: every scenario is safe under both models, and cannot get stuck.

use check::{GracePeriods, Model, Verdict, explore, scenarios};

use super::{LIMIT, unsafe_scenarios};

fn every_scenario_is_safe_under(model: Model) {
    super::none(&unsafe_scenarios::<GracePeriods>(LIMIT, |_, this| this == model));
}

#[test]
fn every_scenario_is_safe_under_store_buffering() {
    every_scenario_is_safe_under(Model::Tso);
}

#[test]
fn every_scenario_is_safe_under_weaker_memory() {
    every_scenario_is_safe_under(Model::Weak);
}

#[test]
fn names_are_unique() {
    let mut names: Vec<_> = scenarios::all().iter().map(|scenario| scenario.name.clone()).collect();
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}

#[test]
fn too_many_states_are_said_to_be_so() {
    let scenario = scenarios::named("one-reader").expect("it exists");
    assert_eq!(explore(&scenario, Model::Tso, None, 10), Verdict::LimitReached);
}
