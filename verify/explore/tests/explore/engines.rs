//! The kernel engines: safe, sure to finish, and none of their steps without a reason.

use check::Verdict;
use check::engines::{Finding, SUBJECTS};

/// Far above what any of these needs: reaching it is a failure.
const LIMIT: usize = 2_000_000;

#[test]
fn every_engine_is_safe_and_finishes() {
    for subject in SUBJECTS {
        for on in subject.quick {
            let verdict = subject.explore(*on, None, LIMIT);
            println!("{} on {on}: {verdict}", subject.name);
            assert!(verdict.is_safe(), "{} on {on}: {verdict}", subject.name);
        }
    }
}

#[test]
fn each_step_that_is_left_out_does_what_the_table_says() {
    let mut wrong = Vec::new();
    for subject in SUBJECTS {
        for expected in subject.mutants {
            let verdict = subject.explore(expected.on, Some(expected.step), LIMIT);
            println!("{} without {}: {verdict}\n", subject.name, expected.step);
            let as_expected = match verdict {
                Verdict::Violation { .. } => expected.finding == Finding::Unsafe,
                Verdict::Stuck { .. } => expected.finding == Finding::Stuck,
                Verdict::Safe { .. } => matches!(expected.finding, Finding::Harmless(_)),
                Verdict::LimitReached => false,
            };
            if !as_expected {
                wrong.push(format!("{} without {}: {verdict}", subject.name, expected.step));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What an engine needs of CPUs is written down, and no more than it needs.
#[test]
fn an_engine_gets_stuck_where_the_table_says() {
    for subject in SUBJECTS {
        for (on, why) in subject.stuck_on {
            let verdict = subject.explore(*on, None, LIMIT);
            println!("{} on {on}, since {why}: {verdict}\n", subject.name);
            assert!(
                matches!(verdict, Verdict::Stuck { .. }),
                "{} on {on}: {verdict}",
                subject.name
            );
        }
    }
}

/// A step that an engine gets must be tried here; and one that only saves time must not do harm.
#[test]
fn every_step_is_in_the_table() {
    for subject in SUBJECTS {
        let mut known: Vec<_> = subject.mutants.iter().map(|expected| expected.step).collect();
        let mut listed = subject.steps.concat();
        known.sort_unstable();
        listed.sort_unstable();
        assert_eq!(known, listed, "{}", subject.name);
        for expected in subject.mutants {
            let is_for_speed = subject.steps[1].contains(&expected.step);
            let is_harmless = matches!(expected.finding, Finding::Harmless(_));
            assert_eq!(is_harmless, is_for_speed, "{} without {}", subject.name, expected.step);
        }
    }
    let tree = |variant: &&str| variant.starts_with("tree");
    let without: Vec<_> =
        SUBJECTS.iter().filter(|s| s.mutants.is_empty()).map(|s| s.name).collect();
    assert!(without.iter().all(tree), "no steps of {without:?} are tried");
}

#[test]
fn a_trace_of_an_engine_reads_step_by_step() {
    let subject = SUBJECTS.iter().find(|subject| subject.name == "poll-global").expect("it exists");
    let expected = subject.mutants.iter().find(|expected| expected.step == "wait-for-all-cpus");
    let expected = expected.expect("it exists");
    let Verdict::Violation { what, trace } =
        subject.explore(expected.on, Some(expected.step), LIMIT)
    else {
        panic!("a grace period that waits for no thread is found")
    };
    assert_eq!(what, "a grace period of 0 ends before a section of 0");
    assert_eq!(trace[0], "0: Lock");
    assert!(trace.last().is_some_and(|last| last.contains("a grace period ends")), "{trace:?}");
}
