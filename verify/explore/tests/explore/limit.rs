//! Bounded memory is bounded, and no thread gets stuck; each fault is found where the table says.

use check::Verdict;
use check::harness::{harm_of_harmless_faults, unsafe_scenarios, wrong_faults};
use check::limit::{Limited, Mutant, exhaustive, explore, named};

/// Far above what any of these needs: reaching it is a failure.
const LIMIT: usize = 3_000_000;

#[test]
fn every_scenario_is_safe() {
    let found = unsafe_scenarios::<Limited>(LIMIT, |_, _| true);
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
#[ignore = "minutes"]
fn the_bigger_scenarios_are_safe() {
    for scenario in exhaustive() {
        let verdict = explore(&scenario, None, 20 * LIMIT);
        println!("{}: {verdict}", scenario.name);
        assert!(verdict.is_safe(), "{}: {verdict}", scenario.name);
    }
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    let wrong = wrong_faults::<Limited>(LIMIT, |_, _| true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn harmless_faults_are_harmless_in_every_scenario() {
    let harm = harm_of_harmless_faults::<Limited>(LIMIT, |_, _| true);
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = named("two-threads").expect("it exists");
    let verdict = explore(&scenario, Some(Mutant::WaitInSection), LIMIT);
    let Verdict::Stuck { trace } = verdict else { panic!("waiting for oneself is found") };
    assert!(trace.iter().any(|step| step.ends_with("a section begins")), "{trace:?}");
    assert!(trace.last().is_some_and(|step| step.contains("WaitAndRun")), "{trace:?}");
}

#[test]
fn too_many_states_are_said_to_be_so() {
    let scenario = named("two-threads").expect("it exists");
    assert_eq!(explore(&scenario, None, 10), Verdict::LimitReached);
}
