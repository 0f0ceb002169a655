//! Sequence locks, latches and the lock among their writers are safe; each fault is found where the
//! table says.

use check::Model;
use check::harness::{harm_of_harmless_faults, unsafe_scenarios, wrong_faults};
use check::sequence::Sequence;

const LIMIT: usize = 4_000_000;

/// The lock is small under the weak model where two threads take it, one of them twice: the others
/// are millions of states.
fn is_small(name: &str, model: Model) -> bool {
    model == Model::Tso || !name.starts_with("writers") || name.starts_with("writers-two")
}

#[test]
fn every_scenario_is_safe() {
    let found =
        unsafe_scenarios::<Sequence>(LIMIT, |scenario, model| is_small(scenario.name, model));
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    let wrong = wrong_faults::<Sequence>(LIMIT, |fault, model| is_small(fault.scenario, model));
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn harmless_faults_are_harmless_in_every_scenario() {
    let harm = harm_of_harmless_faults::<Sequence>(LIMIT, |scenario, model| {
        is_small(scenario.name, model)
    });
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}
