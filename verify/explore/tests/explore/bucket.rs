//! A bucket of the hash map is safe as it stands; each fault is found where the table says.

use check::bucket::{Bucket, Scenario};
use check::harness::{harm_of_harmless_faults, unsafe_scenarios, wrong_faults};

const LIMIT: usize = 1_000_000;

#[test]
fn every_scenario_is_safe() {
    let found = unsafe_scenarios::<Bucket>(LIMIT, |_, _| true);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    let wrong = wrong_faults::<Bucket>(LIMIT, |_, _| true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn harmless_faults_are_harmless_in_every_scenario() {
    // The biggest have no step that others lack.
    let big = ["timed-refilled-twice", "timed-grown"];
    let is_asked = |scenario: &Scenario, _| !big.contains(&scenario.name);
    let harm = harm_of_harmless_faults::<Bucket>(LIMIT, is_asked);
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}
