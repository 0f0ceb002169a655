//! Restartable reads, their fallback, counts, locks and references are safe and cannot get stuck;
//! each fault is found where the table says.
//!
//! The normal run explores every scenario under TSO, and those that are not big under the weak
//! model, too. Every row of the table is looked for: in a big scenario, what both models find is
//! looked for under TSO alone, and what the weak one alone finds under both; so each row that does
//! harm is found at least once. `cargo test -p quiescence-verify --test explore rseq_read:: --
//! --ignored` does the rest.

use check::rseq_read::RESTART;
use check::{Explored, Fault, Kind, Model, Verdict};

use super::{LIMIT, unsafe_with, wrong_faults};

/// Those that take a second or more each under the weak model.
const BIG: &[&str] = &[
    "snapshot-two-updates",
    "snapshot-two-writers",
    "guard-two-reads",
    "counts-in-two-steps",
    "growing-small",
    "growing-portable",
    "local-global-two-readers",
    "local-global-portable-two-readers",
    "local-global-stranger",
    "big-ref-two-who-stay",
    "fold-lock-again",
];

/// Those that have too many states under the weak model.
const TSO_ONLY: &[&str] = &[
    "guard-two-readers",
    "growing",
    "growing-two-sections",
    "growing-two-readers",
    "big-ref-two-holders",
    "fold-lock-two-readers",
];

fn is_big(scenario: &dyn Explored) -> bool {
    BIG.contains(&scenario.name()) || TSO_ONLY.contains(&scenario.name())
}

/// Whether the normal run looks for a fault under this model.
fn is_quick(fault: &Fault, scenario: &dyn Explored, model: Model) -> bool {
    let is_found_by_both = !fault.weak_only && fault.kind != Kind::Harmless;
    model == Model::Tso || !is_found_by_both || !is_big(scenario)
}

#[test]
fn every_scenario_is_safe() {
    let is_asked = |scenario: &dyn Explored, model| model == Model::Tso || !is_big(scenario);
    super::none(&unsafe_with(&RESTART, None, LIMIT, is_asked));
}

/// The ignored tests name scenarios: not one that is gone.
#[test]
fn the_big_scenarios_are_in_the_table() {
    for name in BIG.iter().chain(TSO_ONLY) {
        assert!(RESTART.named(name).is_some(), "{name}");
    }
}

#[test]
#[ignore = "a minute or two"]
fn the_big_scenarios_are_safe_under_weaker_memory() {
    for name in BIG {
        let scenario = RESTART.named(name).expect("it exists");
        let verdict = scenario.explore(Model::Weak, None, LIMIT);
        println!("{name}: {verdict}");
        assert!(verdict.is_safe(), "{name}: {verdict}");
    }
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    super::none(&wrong_faults(&RESTART, LIMIT, is_quick));
}

#[test]
#[ignore = "half a minute"]
fn faults_of_the_big_scenarios_are_found_under_weaker_memory() {
    let is_asked = |fault: &Fault, scenario: &dyn Explored, model| {
        model == Model::Weak && !is_quick(fault, scenario, model)
    };
    super::none(&wrong_faults(&RESTART, LIMIT, is_asked));
}

/// What the table calls harmless changes something all the same, or it would not be a mutant.
#[test]
fn a_harmless_fault_is_not_the_same_program() {
    let harmless = RESTART.faults.iter().filter(|fault| fault.kind == Kind::Harmless);
    for (fault, scenario) in
        harmless.flat_map(|fault| RESTART.scenarios_of(fault).map(move |one| (fault, one)))
    {
        // The smaller model first: the other one is explored where that does not tell them apart.
        let differs = Model::ALL.iter().any(|model| {
            let [whole, without] =
                [None, Some(fault.mutant)].map(|mutant| scenario.explore(*model, mutant, LIMIT));
            whole != without
        });
        assert!(differs, "{} in {}", fault.mutant, scenario.name());
    }
}

#[test]
fn the_controls_of_a_restartable_read_fail() {
    let scenario = RESTART.named("snapshot").expect("it exists");
    for model in Model::ALL {
        assert!(scenario.explore(model, None, LIMIT).is_safe());
        for name in ["no-restart-barrier", "plain-barrier", "restart-no-abort-at-preemption"] {
            let verdict = scenario.explore(model, Some(name), LIMIT);
            assert!(matches!(verdict, Verdict::Violation { .. }), "{name}: {verdict}");
        }
    }
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = RESTART.named("snapshot").expect("it exists");
    let verdict = scenario.explore(Model::Tso, Some("plain-barrier"), LIMIT);
    super::reads(
        verdict,
        "object 0 is touched by a reader after it was freed",
        "reader 0 on cpu 0: rseq_cs = section",
        "reader 0 on cpu 0: touches object 0",
    );
}

#[test]
fn too_many_states_are_said_to_be_so() {
    let scenario = RESTART.named("snapshot").expect("it exists");
    assert_eq!(scenario.explore(Model::Tso, None, 10), Verdict::LimitReached);
}
