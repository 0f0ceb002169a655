//! SRCU as it stands is safe and cannot get stuck; each fault is found where the table says.

use check::two_bank::{FAULTS, Kind, Mutant, Scenario, explore, named, scenarios};
use check::{Model, Models, Verdict};
use grace::two_bank::STEPS;

/// Far above what any of these needs: reaching it is a failure.
const LIMIT: usize = 2_000_000;

/// Takes half a minute under the weak model.
const BIG: &str = "crossing";

fn quick() -> impl Iterator<Item = (Scenario, Model)> {
    let both = |scenario: Scenario| Model::ALL.map(|model| (scenario.clone(), model));
    let all = scenarios().into_iter().flat_map(both);
    all.filter(|(scenario, model)| scenario.name != BIG || *model == Model::Tso)
}

#[test]
fn every_scenario_is_safe() {
    for (scenario, model) in quick() {
        let verdict = explore(&scenario, model, None, LIMIT);
        println!("{} under {model:?}: {verdict}", scenario.name);
        assert!(verdict.is_safe(), "{} under {model:?}: {verdict}", scenario.name);
    }
}

#[test]
#[ignore = "half a minute"]
fn the_big_scenario_is_safe_under_weaker_memory() {
    let scenario = named(BIG).expect("it exists");
    let verdict = explore(&scenario, Model::Weak, None, LIMIT);
    assert!(verdict.is_safe(), "{verdict}");
}

#[test]
fn every_fault_is_found_where_the_table_says() {
    let mut wrong = Vec::new();
    for fault in FAULTS {
        let scenario = named(fault.scenario).expect("the table names a scenario");
        for model in Model::ALL {
            let expected = match (fault.models, model) {
                (Models::Both, _) | (Models::WeakOnly, Model::Weak) => Some(fault.kind),
                _ => None,
            };
            let verdict = explore(&scenario, model, Some(fault.mutant), LIMIT);
            println!("{:?} under {model:?}: {verdict}\n", fault.mutant);
            let as_expected = match verdict {
                Verdict::Violation { .. } => expected == Some(Kind::Unsafe),
                Verdict::Stuck { .. } => expected == Some(Kind::Stuck),
                Verdict::Safe { .. } => expected.is_none(),
                Verdict::LimitReached => false,
            };
            if !as_expected {
                wrong.push(format!("{:?} under {model:?}: {verdict}", fault.mutant));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn harmless_faults_are_harmless_in_every_scenario() {
    for fault in FAULTS.iter().filter(|fault| fault.kind == Kind::Harmless) {
        assert_eq!(fault.models, Models::Neither);
        for (scenario, model) in quick().filter(|(scenario, _)| scenario.name != BIG) {
            let verdict = explore(&scenario, model, Some(fault.mutant), LIMIT);
            assert!(verdict.is_safe(), "{:?} in {}: {verdict}", fault.mutant, scenario.name);
        }
    }
}

#[test]
fn the_table_has_every_step_of_the_machine() {
    for step in STEPS {
        assert!(FAULTS.iter().any(|fault| fault.mutant == Mutant::Omitted(step)), "{step}");
    }
}

#[test]
fn a_trace_reads_step_by_step() {
    let scenario = named("one-reader").expect("it exists");
    let verdict = explore(&scenario, Model::Tso, Some(Mutant::Omitted("second-scan")), LIMIT);
    let Verdict::Violation { what, trace } = verdict else { panic!("the missing scan is found") };
    assert_eq!(what, "object 0 is read after it was freed");
    assert_eq!(trace.first().map(String::as_str), Some("reader 0 on cpu 0: looks up bank 0"));
    assert_eq!(trace.last().map(String::as_str), Some("reader 0: reads object 0"));
}

#[test]
fn too_many_states_are_said_to_be_so() {
    let scenario = named("one-reader").expect("it exists");
    assert_eq!(explore(&scenario, Model::Tso, None, 10), Verdict::LimitReached);
}
