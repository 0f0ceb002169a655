//! Bounded memory: bigger scenarios, and traces.

use check::limit::LIMITED;
use check::{Explored, Model, Verdict};

use super::LIMIT;

fn two_threads() -> &'static dyn Explored {
    LIMITED.named("two-threads").expect("it exists")
}

#[test]
#[ignore = "minutes"]
fn the_bigger_scenarios_are_safe() {
    for scenario in &LIMITED.big {
        let verdict = scenario.explore(Model::Tso, None, 12 * LIMIT);
        println!("{}: {verdict}", scenario.name());
        assert!(verdict.is_safe(), "{}: {verdict}", scenario.name());
    }
}

#[test]
fn a_trace_reads_step_by_step() {
    let verdict = two_threads().explore(Model::Tso, Some("limit-wait-in-section"), LIMIT);
    let Verdict::Stuck { trace } = verdict else { panic!("waiting for oneself is found") };
    assert!(trace.iter().any(|step| step.ends_with("a section begins")), "{trace:?}");
    assert!(trace.last().is_some_and(|step| step.contains("WaitAndRun")), "{trace:?}");
}

#[test]
fn too_many_states_are_said_to_be_so() {
    assert_eq!(two_threads().explore(Model::Tso, None, 10), Verdict::LimitReached);
}
