//! Sequence locks, latches and the lock among their writers are safe; each fault is found where the
//! table says.

use check::harness::{harm_of_harmless_faults, unsafe_scenarios, wrong_faults};
use check::sequence::Sequence;

const LIMIT: usize = 4_000_000;

#[test]
fn every_scenario_is_safe() {
    let found = unsafe_scenarios::<Sequence>(LIMIT, |_, _| true);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    let wrong = wrong_faults::<Sequence>(LIMIT, |_, _| true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn harmless_faults_are_harmless_in_every_scenario() {
    let harm = harm_of_harmless_faults::<Sequence>(LIMIT, |_, _| true);
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}
