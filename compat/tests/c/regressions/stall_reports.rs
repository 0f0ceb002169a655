//! Reports of stalled grace periods, in programs that never asked for them.

use xtask::needs;
use xtask::needs::Need::Gcc;

use super::compile;
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
    if needs::met(&[Gcc]) {
        let (_, said) = run_it("barrier", &[]);
        assert_eq!(said, "");
    }
}

const SOON: (&str, &str) = ("QUIESCENCE_STALL_MS", "20");

/// The program looks at its `signalfd` and at all dispositions itself.
#[test]
fn a_report_took_a_signal_that_the_program_takes_by_signalfd() {
    if needs::met(&[Gcc]) {
        for case in ["reader-blocks", "reader-does-not-block"] {
            let (said, _) = run_it(case, &[SOON]);
            assert!(said.contains("the program uses every real-time signal itself"), "{said}");
        }
    }
}

/// The program installs a handler of its own over ours, and counts its calls itself.
#[test]
fn a_report_sent_the_signal_to_a_handler_of_the_program() {
    if needs::met(&[Gcc]) {
        let (said, _) = run_it("handler", &[SOON]);
        assert!(said.contains("the program has taken signal"), "{said}");
    }
}

/// It was asked on whatever stack it was on, with however little room.
#[test]
fn a_thread_without_an_alternate_stack_was_sent_the_signal() {
    if needs::met(&[Gcc]) {
        // The loader's looking up of functions takes more than the program leaves itself.
        let environment = [SOON, ("LD_BIND_NOW", "1")];
        let (said, _) = run_it("no-alternate-stack", &environment);
        assert!(
            said.contains("no stack: the thread has no sufficient alternate signal stack"),
            "{said}"
        );
    }
}
