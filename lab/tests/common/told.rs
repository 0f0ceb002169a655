//! How a program of the project ended, and what it said. Tests of three packages include
//! this file.

#![allow(dead_code, reason = "each of them needs a part of it")]

use std::process::Output;

/// Its exit code, standard output and standard error.
pub(crate) fn told(output: &Output) -> (i32, String, String) {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).expect("the program writes UTF-8");
    let code = output.status.code().expect("the program was not killed");
    (code, text(&output.stdout), text(&output.stderr))
}

/// Fails unless the program ended with this code; shows what it said.
pub(crate) fn expect_code(output: &Output, code: i32) -> (String, String) {
    let (found, stdout, stderr) = told(output);
    assert_eq!(found, code, "standard output:\n{stdout}\nstandard error:\n{stderr}");
    (stdout, stderr)
}

/// The same, and it said this on standard error.
pub(crate) fn fails(output: &Output, code: i32, expected: &str) {
    let (_, stderr) = expect_code(output, code);
    assert!(stderr.contains(expected), "{expected}: {stderr}");
}

/// The same of standard output.
pub(crate) fn prints(output: &Output, code: i32, expected: &str) {
    let (stdout, _) = expect_code(output, code);
    assert!(stdout.contains(expected), "{expected}: {stdout}");
}
