//! Litmus tests: forbidden outcomes are never reached, allowed ones are.

use check::litmus::{self, Cycle, Reader, Shape};
use check::{Explored, Model, Scenario, Verdict};

use super::LIMIT;

fn is_never_reached(scenario: &Scenario) {
    for model in Model::ALL {
        let verdict = scenario.explore(model, None, LIMIT);
        assert!(verdict.is_safe(), "{} under {model:?}: {verdict}", scenario.name);
    }
}

fn is_reached(scenario: &Scenario, model: Model, mutant: Option<&'static str>) {
    let verdict = scenario.explore(model, mutant, LIMIT);
    assert!(
        matches!(verdict, Verdict::Violation { .. }),
        "{} under {model:?} with {mutant:?}: {verdict}",
        scenario.name
    );
}

fn is_reached_under_both(scenario: &Scenario, mutant: Option<&'static str>) {
    Model::ALL.iter().for_each(|model| is_reached(scenario, *model, mutant));
}

#[test]
fn forbidden_outcomes_are_never_reached() {
    litmus::forbidden().iter().for_each(is_never_reached);
}

#[test]
fn two_grace_periods_forbid_a_cycle_with_two_sections() {
    litmus::forbidden_two_two().iter().take(1).for_each(is_never_reached);
}

#[test]
fn allowed_outcomes_are_reached() {
    for scenario in litmus::allowed() {
        is_reached_under_both(&scenario, None);
    }
}

/// The rule itself. With swapped accesses nothing but the rule can forbid a cycle, whatever the
/// memory: it must be reached exactly if there are fewer grace periods than sections. In the other
/// shapes memory or a fence may forbid it as well, so only one direction can be asked.
fn the_rule_holds(cycle: &Cycle, reader: Reader, shape: Shape) {
    let scenario = cycle.scenario(reader, shape);
    if cycle.is_forbidden() {
        is_never_reached(&scenario);
    } else if shape == Shape::Swapped {
        is_reached_under_both(&scenario, None);
    }
}

#[test]
fn every_cycle_of_two_is_forbidden_exactly_with_enough_grace_periods() {
    let cycles = Cycle::all(2);
    assert_eq!(cycles.len(), 21);
    for cycle in cycles {
        for reader in Reader::ALL {
            Shape::ALL.iter().for_each(|shape| the_rule_holds(&cycle, reader, *shape));
        }
    }
}

#[test]
#[ignore = "those of two have the rule: .ci/models"]
fn every_cycle_of_three_is_forbidden_exactly_with_enough_grace_periods() {
    let cycles = Cycle::all(3);
    assert_eq!(cycles.len(), 76);
    assert_eq!(cycles.iter().filter(|cycle| cycle.is_forbidden()).count(), 38);
    for cycle in cycles {
        the_rule_holds(&cycle, Reader::Ordinary, Shape::Swapped);
    }
}

fn forbidden(name: &str) -> Scenario {
    let scenario = litmus::forbidden().into_iter().find(|test| test.name == name);
    scenario.unwrap_or_else(|| panic!("{name} exists"))
}

/// The forbidden outcomes are forbidden by the grace period, not by the way the tests are written:
/// for each kind of reader and each shape a mutant of the protocol reaches them. (Two grace periods
/// are kept apart by the machine's lock as well as by fences; that memory alone would not is asked
/// by `litmus-sb-nothing` among the allowed ones.)
#[test]
fn with_a_fault_in_the_protocol_forbidden_outcomes_are_reached() {
    let mut faults = vec![
        ("litmus-sb-in-order-ordinary", "no-heavy-fence"),
        ("litmus-sb-before-ordinary", "no-heavy-fence"),
        ("litmus-sb-after-ordinary", "no-heavy-fence"),
        ("litmus-sb-empty-ordinary", "no-heavy-fence"),
        ("litmus-sb-in-order-late", "no-registration"),
        ("litmus-sb-swapped-nested", "nested-unlock-ends"),
        ("litmus-sb-in-order-portable", "no-light-fence-at-lock"),
        ("litmus-sb-in-order-portable-nested", "no-light-fence-at-lock"),
        ("litmus-sb-in-order-portable-late", "no-light-fence-at-lock"),
        ("litmus-sb-in-order-qsbr", "online-without-fence"),
        ("litmus-sb-before-qsbr", "online-without-fence"),
        ("litmus-sb-in-order-portable-qsbr", "online-without-fence"),
    ];
    let owned: Vec<String> = Reader::ALL
        .iter()
        .flat_map(|reader| {
            let of = |test: &str| format!("litmus-{test}-{}", reader.name());
            [of("sync-free"), of("sync-read-swapped"), of("sb-swapped"), of("sb-polled")]
        })
        .collect();
    faults.extend(owned.iter().map(|name| (name.as_str(), "no-scan")));
    for (name, mutant) in faults {
        let scenario = forbidden(name);
        is_reached_under_both(&scenario, Some(mutant));
    }
    // What only a weak memory does.
    for (name, mutant) in [
        ("litmus-sb-swapped-ordinary", "relaxed-scan"),
        ("litmus-sync-read-in-order-ordinary", "no-heavy-fence"),
        ("litmus-sync-read-in-order-qsbr-states", "no-scan"),
        ("litmus-sb-in-order-qsbr-states", "relaxed-number-load"),
    ] {
        is_reached(&forbidden(name), Model::Weak, Some(mutant));
    }
}
