//! Reports of stalled grace periods, in programs that never asked for them. (When they begin, and
//! on which stacks a thread is asked, is held by the library's own tests.)

use xtask::needs;
use xtask::needs::Need::Gcc;

use super::compile;
use crate::program::{Whose, ended, text};

/// What the program wrote, which ended well.
fn run_it(case: &str) -> String {
    let soon = [("QUIESCENCE_STALL_MS", "20")];
    let output = ended(&compile("stall_reports.c", &[]), Whose::Ours, &[case], &soon);
    let said = text(&output);
    assert!(output.status.success(), "{case}: {}\n{said}", output.status);
    said
}

/// The program looks at its `signalfd` and at all dispositions itself.
#[test]
fn a_report_took_a_signal_that_the_program_takes_by_signalfd() {
    if needs::met(&[Gcc]) {
        for case in ["reader-blocks", "reader-does-not-block"] {
            let said = run_it(case);
            assert!(said.contains("the program uses every real-time signal itself"), "{said}");
        }
    }
}

/// The program installs a handler of its own over ours, and counts its calls itself.
#[test]
fn a_report_sent_the_signal_to_a_handler_of_the_program() {
    if needs::met(&[Gcc]) {
        let said = run_it("handler");
        assert!(said.contains("the program has taken signal"), "{said}");
    }
}
