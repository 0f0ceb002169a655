//! Bounded memory is bounded, and no thread gets stuck; each fault is found where the table says.

use check::harness::{harm_of_harmless_faults, unsafe_scenarios, wrong_faults};
use check::limit::{FAULTS, Limited, Mutant, exhaustive, explore, named};
use check::{Kind, Verdict};

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
fn the_document_names_faults_that_do_harm() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ORDERINGS.md");
    let text = std::fs::read_to_string(path).expect("the document is there");
    let section = text.split("\n## The limit\n").nth(1).expect("it has a section");
    let section = section.split("\n## ").next().unwrap_or_default();
    let quoted = section.split('`').skip(1).step_by(2);
    let named: Vec<&str> = quoted.filter(|word| word.chars().all(char::is_alphabetic)).collect();
    assert!(named.len() > 10, "{named:?}");
    for name in named {
        let fault = FAULTS.iter().find(|fault| format!("{:?}", fault.mutant) == name);
        assert!(fault.is_some_and(|fault| fault.kind != Kind::Harmless), "{name}");
    }
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
