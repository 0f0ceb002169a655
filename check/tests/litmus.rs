//! Litmus tests: forbidden outcomes are never reached, allowed ones are.

use check::{Model, Mutant, Verdict, explore, litmus};

const LIMIT: usize = 5_000_000;

#[test]
fn forbidden_outcomes_are_never_reached() {
    for scenario in litmus::forbidden() {
        for model in Model::ALL {
            let verdict = explore(&scenario, model, None, LIMIT);
            println!("{} under {model:?}: {verdict}", scenario.name);
            assert!(verdict.is_safe(), "{} under {model:?}: {verdict}", scenario.name);
        }
    }
}

#[test]
fn allowed_outcomes_are_reached() {
    for scenario in litmus::allowed() {
        for model in Model::ALL {
            let verdict = explore(&scenario, model, None, LIMIT);
            assert!(
                matches!(verdict, Verdict::Violation { .. }),
                "{} under {model:?}: {verdict}",
                scenario.name
            );
        }
    }
}

/// The forbidden outcomes are forbidden by the grace period, not by the way the tests are written.
#[test]
fn without_the_fence_and_the_scan_forbidden_outcomes_are_reached() {
    for (name, mutant) in [
        ("litmus-sb", Mutant::NoHeavyFence),
        ("litmus-sb-swapped", Mutant::NoScan),
        ("litmus-sb-before", Mutant::NoHeavyFence),
        ("litmus-sb-after", Mutant::NoHeavyFence),
        ("litmus-sb-empty", Mutant::NoHeavyFence),
        ("litmus-sb-portable", Mutant::NoLightFenceAtLock),
        ("litmus-sync-read", Mutant::NoScan),
        ("litmus-qsbr", Mutant::OnlineWithoutFence),
        ("litmus-qsbr-before", Mutant::OnlineWithoutFence),
    ] {
        let scenario = litmus::forbidden().into_iter().find(|test| test.name == name);
        let scenario = scenario.expect("it exists");
        for model in Model::ALL {
            let verdict = explore(&scenario, model, Some(mutant), LIMIT);
            assert!(
                matches!(verdict, Verdict::Violation { .. }),
                "{name} under {model:?} with {mutant:?}: {verdict}"
            );
        }
    }
}
