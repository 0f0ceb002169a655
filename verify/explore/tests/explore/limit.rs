//! Bounded memory: bigger scenarios, and traces.

use check::harness::World;
use check::limit::{Limited, Mutant, Scenario};
use check::{Model, Verdict};

use super::LIMIT;

fn explore(scenario: &Scenario, mutant: Option<Mutant>, limit: usize) -> Verdict {
    Limited::explore(scenario, Model::Tso, mutant, limit)
}

#[test]
#[ignore = "minutes"]
fn the_bigger_scenarios_are_safe() {
    for scenario in &Limited::table().big {
        let verdict = explore(scenario, None, 12 * LIMIT);
        println!("{}: {verdict}", scenario.name);
        assert!(verdict.is_safe(), "{}: {verdict}", scenario.name);
    }
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = Limited::named("two-threads").expect("it exists");
    let verdict = explore(scenario, Some(Mutant::WaitInSection), LIMIT);
    let Verdict::Stuck { trace } = verdict else { panic!("waiting for oneself is found") };
    assert!(trace.iter().any(|step| step.ends_with("a section begins")), "{trace:?}");
    assert!(trace.last().is_some_and(|step| step.contains("WaitAndRun")), "{trace:?}");
}

#[test]
fn too_many_states_are_said_to_be_so() {
    let scenario = Limited::named("two-threads").expect("it exists");
    assert_eq!(explore(scenario, None, 10), Verdict::LimitReached);
}
