//! The tests failed on a machine without liburcu's headers and g++, and `cargo test` stopped there.

use std::process::{Command, Output};

use xtask::needs;

/// Any test that needs something.
#[test]
fn a_program_in_cpp() {
    needs::or_return!(Gxx);
    let output = Command::new("g++").arg("--version").output().expect("g++ runs");
    assert!(output.status.success());
}

/// The test above, on a machine that has not one program.
fn without_programs(expected: &str) -> Output {
    let mut again = Command::new(std::env::current_exe().expect("a path"));
    again.args(["regressions::plain_machine::a_program_in_cpp", "--exact"]);
    again.env("PATH", "/nonexistent").env("QUIESCENCE_TEST_EXPECT", expected);
    again.env_remove("CC").output().expect("this program runs")
}

#[test]
fn what_is_missing_is_said_and_no_test_fails() {
    let output = without_programs("liburcu,membarrier");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    assert!(said.starts_with("skipped: no gcc") && said.contains("; install gcc"), "{said}");
}

/// Where it is known to be there, it may not be missed in silence.
#[test]
fn what_is_expected_and_missing_fails() {
    assert!(!without_programs("membarrier,gcc").status.success());
}
