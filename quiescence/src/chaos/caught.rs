//! Whether the steps are caught: run by tests of the files that must catch them.

use std::collections::BTreeSet;
use std::process::{Command, Output};
use std::time::Duration;

use crate::limited;

use super::{Catcher, Mutant, Place, SWITCH};

/// Runs each test of this file that must notice a missing step: as it is, and without the step.
///
/// The caller is one of the tests of `target`, a file of `package`.
///
/// # Panics
/// If a test fails as it is, or passes without its step.
pub fn each_is_caught(package: &str, target: &str) {
    let is_here = |place: &Place| place.package == package && place.target == target;
    let mut found = 0;
    let mut sound = BTreeSet::new();
    for mutant in Mutant::ALL.iter().copied() {
        let places = mutant.catchers().iter().filter_map(|catcher| match catcher {
            Catcher::Test(place) if is_here(place) => Some(place),
            _ => None,
        });
        for place in places {
            found += 1;
            if sound.insert((place.test, place.per_cpu)) {
                let output = again(place, None);
                assert!(output.status.success(), "{}: {output:?}", place.test);
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(said.contains("1 passed"), "{} is one test: {said}", place.test);
            }
            let fails = (0..place.runs).any(|_| !again(place, Some(mutant)).status.success());
            assert!(fails, "{} does not notice that {} is missing", place.test, mutant.name());
        }
    }
    assert!(found > 0, "no step has a test in {package}/{target}");
}

/// Has each model of the library fail that must notice a missing step.
#[cfg(all(test, loom))]
#[test]
fn each_removed_step_is_caught_by_its_models() {
    for mutant in Mutant::ALL.iter().copied() {
        for catcher in mutant.catchers() {
            let Catcher::Loom(tests) = catcher else { continue };
            for test in *tests {
                let place = Place {
                    package: "quiescence",
                    target: "lib",
                    test,
                    per_cpu: "",
                    runs: 1,
                    seconds: 600,
                };
                let output = again(&place, Some(mutant));
                let said = String::from_utf8_lossy(&output.stdout);
                assert!(said.contains("running 1 test"), "there is no model {test}: {said}");
                let hangs = std::os::unix::process::ExitStatusExt::signal(&output.status)
                    == Some(libc::SIGKILL);
                assert!(!hangs, "{test} without {} takes too long", mutant.name());
                let fails = !output.status.success();
                assert!(fails, "{test} does not notice that {} is missing", mutant.name());
            }
        }
    }
}

/// The unit tests'.
#[cfg(all(test, not(loom)))]
#[test]
#[cfg_attr(miri, ignore = "child processes")]
fn removed_steps_are_caught_in_other_processes() {
    each_is_caught("quiescence", "lib");
}

/// Runs the test in a process of its own, without the step; in time, or it is killed.
fn again(place: &Place, without: Option<Mutant>) -> Output {
    let mut again = Command::new(std::env::current_exe().expect("this program is a file"));
    again.args([place.test, "--exact", "--nocapture", "--test-threads=1"]);
    if !place.per_cpu.is_empty() {
        again.env("QUIESCENCE_PERCPU", place.per_cpu);
    }
    match without {
        Some(mutant) => again.env(SWITCH, mutant.name()),
        None => again.env_remove(SWITCH),
    };
    let limit = Duration::from_secs(place.seconds.into());
    limited::output(&mut again, limit).expect("this program runs")
}
