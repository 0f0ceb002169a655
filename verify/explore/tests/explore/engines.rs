//! The kernel engines: safe, sure to finish, and none of their steps without a reason.

use check::Kind;
use check::Verdict;
use check::engines::{faults, subjects};
use kernel::engine::token::{published, v2};
use kernel::engine::{on_demand, poll, tick, tree};

use super::LIMIT;

#[test]
fn every_engine_is_safe_and_finishes() {
    for subject in subjects() {
        for on in &subject.quick {
            let verdict = subject.explore(on, None, LIMIT);
            println!("{} on {on:?}: {verdict}", subject.name);
            assert!(verdict.is_safe(), "{} on {on:?}: {verdict}", subject.name);
        }
    }
}

/// Leaves out, one at a time, the steps whose place in the table is as asked.
fn left_out(is_asked: fn(Kind) -> bool) {
    let mut wrong = Vec::new();
    for subject in subjects() {
        let steps = subject.faults().filter(|expected| expected.step.is_some());
        for expected in steps.filter(|expected| is_asked(expected.comes)) {
            let verdict = subject.explore(&expected.on, expected.step, LIMIT);
            let told = format!("{} without {:?}: {verdict}", subject.name, expected.step);
            println!("{told}\n");
            if !expected.comes.agrees(&verdict) {
                wrong.push(told);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn each_step_that_is_left_out_does_what_the_table_says() {
    left_out(|comes| comes != Kind::Harmless);
}

#[test]
#[ignore = "no promise hangs on it: .ci/models"]
fn each_step_that_only_saves_time_does_no_harm_if_it_is_left_out() {
    left_out(|comes| comes == Kind::Harmless);
}

/// What an engine needs of CPUs is written down, and no more than it needs.
#[test]
fn an_engine_gets_stuck_where_the_table_says() {
    for subject in subjects() {
        for expected in subject.faults().filter(|expected| expected.step.is_none()) {
            let (on, why) = (&expected.on, expected.why.unwrap_or_default());
            let verdict = subject.explore(on, None, LIMIT);
            println!("{} on {on:?}, since {why}: {verdict}\n", subject.name);
            assert!(expected.comes.agrees(&verdict), "{} on {on:?}: {verdict}", subject.name);
        }
    }
}

/// The steps that an engine can leave out, as it lists them; the second ones only save time.
fn steps_of(engine: &str) -> [&'static [&'static str]; 2] {
    match engine {
        "poll-global" | "poll-per-cpu" => [poll::STEPS, poll::STEPS_FOR_SPEED],
        "tick" => [tick::STEPS, tick::STEPS_FOR_SPEED],
        "token-published" => [published::STEPS, published::STEPS_FOR_SPEED],
        "token-relay" => [v2::STEPS, v2::STEPS_FOR_SPEED],
        "on-demand" => [on_demand::STEPS, on_demand::STEPS_FOR_SPEED],
        "on-demand-near-limit" => [&[], &["expedite-near-limit"]],
        "tree-3.15" => [tree::STEPS, tree::STEPS_FOR_SPEED],
        _ => [&[], &[]],
    }
}

/// A step that an engine gets must be tried here; and one that only saves time must not do harm.
#[test]
fn every_step_is_in_the_table() {
    for expected in faults() {
        assert!(!expected.of.is_empty(), "{expected:?}");
        for of in &expected.of {
            assert!(subjects().iter().any(|subject| subject.name == *of), "there is no {of}");
        }
    }
    for subject in subjects() {
        let mut known: Vec<_> = subject.faults().filter_map(|expected| expected.step).collect();
        let [steps, for_speed] = steps_of(subject.name);
        let mut listed = [steps, for_speed].concat();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(known, listed, "{}", subject.name);
        for expected in subject.faults() {
            let is_for_speed = expected.step.is_some_and(|step| for_speed.contains(&step));
            let is_harmless = expected.comes == Kind::Harmless;
            assert_eq!(is_harmless, is_for_speed, "{} without {:?}", subject.name, expected.step);
            assert!(!is_harmless || expected.why.is_some(), "{:?} is for nothing", expected.step);
        }
    }
    let tree = |variant: &&str| variant.starts_with("tree");
    let without: Vec<_> = subjects()
        .iter()
        .filter(|s| steps_of(s.name).concat().is_empty())
        .map(|s| s.name)
        .collect();
    assert!(without.iter().all(tree), "no steps of {without:?} are tried");
}

#[test]
fn a_trace_of_an_engine_reads_step_by_step() {
    let subject =
        subjects().iter().find(|subject| subject.name == "poll-global").expect("it exists");
    let expected = subject.faults().find(|expected| expected.step == Some("wait-for-all-cpus"));
    let expected = expected.expect("it exists");
    let Verdict::Violation { what, trace } = subject.explore(&expected.on, expected.step, LIMIT)
    else {
        panic!("a grace period that waits for no thread is found")
    };
    assert_eq!(what, "a grace period of 0 ends before a section of 0");
    assert_eq!(trace[0], "0: Lock");
    assert!(trace.last().is_some_and(|last| last.contains("a grace period ends")), "{trace:?}");
}
