//! Each mutant is found where its entry says so, and nowhere else in that scenario.

use check::{GracePeriods, Model, Scenario, explore, scenarios};

use super::{LIMIT, harm_of_harmless_faults, wrong_faults};

#[test]
fn every_mutant_is_found_where_the_table_says() {
    super::none(&wrong_faults::<GracePeriods>(LIMIT, |_, _, _| true));
}

#[test]
#[ignore = "no promise hangs on it: .ci/models"]
fn harmless_mutants_are_harmless_in_every_scenario() {
    // The biggest are left to `examples/exhaustive`: the rest has every step in it.
    let big = ["two-holdouts", "sleeping-updaters", "hand-over", "vanished", "stopped-half-way"];
    let is_asked =
        |scenario: &Scenario, model| model == Model::Weak && !big.contains(&&*scenario.name);
    super::none(&harm_of_harmless_faults::<GracePeriods>(LIMIT, is_asked));
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = scenarios::named("one-reader").expect("it exists");
    let verdict = explore(&scenario, Model::Tso, Some(check::Mutant::NoHeavyFence), LIMIT);
    super::reads(
        verdict,
        "object 0 is read after it was freed",
        "reader: load gp.ctr: 0x1",
        "reader: reads object 0",
    );
}
