//! SRCU as it stands is safe and cannot get stuck; each fault is found where the table says.

use std::collections::BTreeSet;

use check::srcu::SRCU;
use check::{Explored, Model};
use grace::srcu::STEPS;

use super::{LIMIT, harm_of_harmless_faults, unsafe_with, wrong_faults};

/// Takes half a minute under the weak model.
const BIG: &str = "crossing";

fn is_quick(scenario: &dyn Explored, model: Model) -> bool {
    scenario.name() != BIG || model == Model::Tso
}

#[test]
fn every_scenario_is_safe() {
    super::none(&unsafe_with(&SRCU, None, LIMIT, is_quick));
}

#[test]
#[ignore = "half a minute"]
fn the_big_scenario_is_safe_under_weaker_memory() {
    let scenario = SRCU.named(BIG).expect("it exists");
    let verdict = scenario.explore(Model::Weak, None, LIMIT);
    assert!(verdict.is_safe(), "{verdict}");
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    super::none(&wrong_faults(&SRCU, LIMIT, |_, _, _| true));
}

#[test]
#[ignore = "no promise hangs on it: .ci/models"]
fn harmless_faults_are_harmless_in_every_scenario() {
    super::none(&harm_of_harmless_faults(&SRCU, LIMIT, |scenario, _| scenario.name() != BIG));
}

#[test]
fn the_table_has_every_step_of_the_machine() {
    let faults = SRCU.faults.iter();
    let listed = faults.filter_map(|fault| fault.mutant.strip_prefix("srcu-without-"));
    assert_eq!(listed.collect::<BTreeSet<_>>(), STEPS.iter().copied().collect());
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = SRCU.named("one-reader").expect("it exists");
    let verdict = scenario.explore(Model::Tso, Some("srcu-without-second-scan"), LIMIT);
    super::reads(
        verdict,
        "object 0 is touched by a reader after it was freed",
        "reader 0 on cpu 0: loads srcu-idx: 0",
        "reader 0 on cpu 0: touches object 0",
    );
}
