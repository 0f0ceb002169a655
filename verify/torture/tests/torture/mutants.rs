//! Runs without one step of the library.

use std::sync::Mutex;
use std::thread;

use serde_json::Value;

use super::told::told;
use super::{expect, expect_code, place, run, torture};

#[test]
fn removed_steps_are_caught() {
    let _place = place();
    let (names, _) = expect_code(&run(["--list-mutants"]), 0);
    assert!(names.lines().count() >= 42, "{names}");
    let left = Mutex::new(names.lines());
    // Four at a time: those that get stuck only wait to be noticed.
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                loop {
                    let next = left.lock().unwrap().next();
                    let Some(name) = next else { break };
                    removed_step_is_caught(name);
                }
            });
        }
    });
}

fn removed_step_is_caught(name: &str) {
    // A run ends by itself: when the fault is caught. The limit is for machines that are busy.
    let output = run(["--mutant", name, "--seconds", "120"]);
    let (code, stdout, stderr) = told(&output);
    if code == 2 && stderr.contains("restartable sequences, which this process does not have") {
        let limit_action = "use Linux 5.10 and glibc 2.35 or later";
        return expect::skip("restartable", "restartable sequences", name, limit_action);
    }
    assert_eq!(code, 0, "{name} was not caught:\n{stdout}\n{stderr}");
    assert!(stdout.contains(&format!("caught: {name}")), "{stdout}");
}

#[test]
fn a_removed_step_that_no_thread_takes_is_not_caught() {
    let _place = place();
    // One reader, which never nests.
    let args = "--mutant nested-unlock-ends --readers 1 --updaters 1 --seconds 1 --json -";
    let (stdout, _) = expect_code(&run(args.split(' ')), 1);
    let report: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    assert_eq!(report["verdict"], "missed");
    assert!(report["first_fault"].is_null());
}

#[test]
fn a_removed_step_that_only_one_path_has_is_removed_there() {
    let _place = place();
    let output = torture("--mutant no-fallback-look --json -".split(' '))
        .env_remove("QUIESCENCE_PERCPU")
        .output();
    let (stdout, _) = expect_code(&output.expect("the program starts"), 0);
    let report: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    assert_eq!((&report["verdict"], &report["per_cpu"]), (&"caught".into(), &"portable".into()));
}

#[test]
fn a_removed_step_needs_the_theme_that_notices_it() {
    let (_, stderr) = expect_code(&run(["--mutant", "one-scan", "--only", "limits"]), 2);
    assert!(stderr.contains("the theme sleepable"), "{stderr}");
}

/// It was refused, since none of its themes was its parent's. The parent took that for what comes
/// of the step, so it had caught whatever was removed.
#[test]
fn a_child_without_a_step_did_not_run() {
    let _place = place();
    let args = "--child --only churn --mutant runner-after-fork --seconds 1 --json -";
    let (stdout, _) = expect_code(&run(args.split(' ')), 1);
    let report: Value = serde_json::from_str(&stdout).expect("nothing but JSON");
    assert_eq!(report["verdict"], "missed", "nobody forks there");
}
