//! Each mutant is found where its entry says so, and nowhere else in that scenario.

use check::{Explored, GRACE_PERIODS, Model};

use super::{LIMIT, harm_of_harmless_faults, wrong_faults};

#[test]
fn every_mutant_is_found_where_the_table_says() {
    super::none(&wrong_faults(&GRACE_PERIODS, LIMIT, |_, _, _| true));
}

#[test]
#[ignore = "no promise hangs on it: .ci/models"]
fn harmless_mutants_are_harmless_in_every_scenario() {
    // The biggest are left to `examples/exhaustive`: the rest has every step in it.
    let big = ["two-holdouts", "sleeping-updaters", "hand-over", "vanished", "stopped-half-way"];
    let is_asked =
        |scenario: &dyn Explored, model| model == Model::Weak && !big.contains(&scenario.name());
    super::none(&harm_of_harmless_faults(&GRACE_PERIODS, LIMIT, is_asked));
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = GRACE_PERIODS.named("one-reader").expect("it exists");
    let verdict = scenario.explore(Model::Tso, Some("no-heavy-fence"), LIMIT);
    super::reads(
        verdict,
        "object 0 is read after it was freed",
        "reader: load gp.ctr: 0x1",
        "reader: reads object 0",
    );
}
