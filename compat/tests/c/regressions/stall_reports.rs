//! Reports of stalled grace periods, in programs that never asked for them.

use xtask::needs;

use super::{compile, compiled_for};
use crate::program::{Whose, ended};

/// What the program wrote, to standard output and standard error, which ended well.
fn run_it(case: &str, environment: &[(&str, &str)]) -> (String, String) {
    let output = ended(&compile("stall_reports.c", &[]), Whose::Ours, &[case], environment);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{case}: {}\n{out}{err}", output.status);
    (out, err)
}

/// `rcu_barrier`, whose grace periods are expedited, was reported after 200 ms.
#[test]
fn a_short_section_was_reported_to_a_program_that_never_asked() {
    needs::or_return!(Gcc);
    assert_eq!(run_it("barrier", &[]).1, "");
}

/// A report comes soon, and has these words. Functions are bound at the start: to look them up
/// takes more of a stack than one of the programs leaves itself.
fn is_told(case: &str, words: &str) {
    needs::or_return!(Gcc);
    let (said, _) = run_it(case, &[("QUIESCENCE_STALL_MS", "20"), ("LD_BIND_NOW", "1")]);
    assert!(said.contains(words), "{case}: {said}");
}

/// The program looks at its `signalfd` and at all dispositions itself.
#[test]
fn a_report_took_a_signal_that_the_program_takes_by_signalfd() {
    for case in ["reader-blocks", "reader-does-not-block"] {
        is_told(case, "the program uses every real-time signal itself");
    }
}

/// The program installs a handler of its own over ours, and counts its calls itself.
#[test]
fn a_report_sent_the_signal_to_a_handler_of_the_program() {
    is_told("handler", "the program has taken signal");
}

/// It was asked on whatever stack it was on, with however little room.
#[test]
fn a_thread_without_an_alternate_stack_was_sent_the_signal() {
    is_told("no-alternate-stack", "no stack: the thread has no sufficient alternate signal stack");
}

/// A thread that is stopped before it pushes to its CPU's worker holds up the thread that frees it.
#[test]
fn a_section_of_the_librarys_own_was_reported() {
    needs::or_return!(Gcc);
    let program = compiled_for("memb", "late_push.c");
    let output = ended(&program, Whose::Ours, &[], &[("QUIESCENCE_STALL_MS", "20")]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("CpuWorkers") && !said.contains("global"), "{said}");
}
