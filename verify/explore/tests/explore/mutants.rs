//! Each mutant is found where its entry says so, and nowhere else in that scenario.

use check::harness::{harm_of_harmless_faults, wrong_faults};
use check::{GracePeriods, Model, Scenario, Verdict, explore, scenarios};

use super::LIMIT;

#[test]
fn every_mutant_is_found_where_the_table_says() {
    let wrong = wrong_faults::<GracePeriods>(LIMIT, |_, _, _| true);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn harmless_mutants_are_harmless_in_every_scenario() {
    // The biggest are left to `examples/exhaustive`: the rest has every step in it.
    let big = ["two-holdouts", "sleeping-updaters", "hand-over", "vanished", "stopped-half-way"];
    let is_asked =
        |scenario: &Scenario, model| model == Model::Weak && !big.contains(&&*scenario.name);
    let harm = harm_of_harmless_faults::<GracePeriods>(LIMIT, is_asked);
    assert!(harm.is_empty(), "{}", harm.join("\n"));
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = scenarios::named("one-reader").expect("it exists");
    let mutant = check::Mutant::NoHeavyFence;
    let Verdict::Violation { what, trace } = explore(&scenario, Model::Tso, Some(mutant), LIMIT)
    else {
        panic!("the missing fence is found")
    };
    assert_eq!(what, "object 0 is read after it was freed");
    assert_eq!(trace.first().map(String::as_str), Some("reader: load gp.ctr: 0x1"));
    assert_eq!(trace.last().map(String::as_str), Some("reader: reads object 0"));
}
