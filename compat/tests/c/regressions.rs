//! Faults that programs have shown, one module a kind of fault, each test named after what went
//! wrong. The programs in C and C++ are in `tests/regressions`, and run on our libraries.

mod callbacks;
mod cpp_headers;
mod forks;
mod header_names;
mod liburcu;
mod plain_machine;
mod stall_reports;
mod threads;

use std::path::PathBuf;

use xtask::needs;

use crate::program::{self, Whose, run};

/// A program of `tests/regressions`, or of an absolute path, against our headers.
fn compile(source: &str, options: &[&str]) -> PathBuf {
    let libraries = ["-lurcu-memb", "-lquiescence", "-ldl"];
    let source = PathBuf::from("regressions").join(source);
    let source = source.to_str().expect("UTF-8");
    program::compile(source, Whose::Ours, &[options, &libraries].concat())
}

/// The same for a flavour.
fn compiled_for(flavor: &str, source: &str) -> PathBuf {
    program::compile_for(flavor, &format!("regressions/{source}"), Whose::Ours, &["-ldl"])
}

/// A program with this argument, or without one, says this for each of these flavours.
fn says(flavors: &[&str], source: &str, argument: Option<&str>, expected: &str) {
    needs::or_return!();
    for flavor in flavors {
        let said = run(&compiled_for(flavor, source), Whose::Ours, argument.as_slice());
        assert_eq!(said, expected, "{flavor} {argument:?}");
    }
}

/// A program ends well for each of these flavours.
fn holds_for(flavors: &[&str], source: &str) {
    says(flavors, source, None, "ok\n");
}

/// A case of a program ends well for each of these flavours.
fn case_holds_for(flavors: &[&str], source: &str, case: &str) {
    says(flavors, source, Some(case), &format!("run {case}\nok {case}\n"));
}
