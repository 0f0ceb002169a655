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

use crate::program::{self, Whose};

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
