//! The protocol as it stands: every scenario is safe under both models, and cannot get stuck.

use check::{GRACE_PERIODS, Model, Verdict};

use super::{LIMIT, unsafe_with};

fn every_scenario_is_safe_under(model: Model) {
    super::none(&unsafe_with(&GRACE_PERIODS, None, LIMIT, |_, this| this == model));
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
    let names = GRACE_PERIODS.all().map(|scenario| scenario.name());
    let unique = names.collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(unique, GRACE_PERIODS.all().count());
}

#[test]
fn too_many_states_are_said_to_be_so() {
    let scenario = GRACE_PERIODS.named("one-reader").expect("it exists");
    assert_eq!(scenario.explore(Model::Tso, None, 10), Verdict::LimitReached);
}

/// The mask of 32 bits overflowed.
#[test]
fn numbers_of_all_bits_are_cut_to_what_they_are() {
    let scenario = GRACE_PERIODS.named("one-reader").expect("it exists");
    let verdict = scenario.explore(Model::Tso, Some("one-pass-after-a-turn"), LIMIT);
    assert!(verdict.is_safe(), "{verdict}");
}
