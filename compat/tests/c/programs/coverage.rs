//! Whether the programs use all there is: each symbol of each of Debian's libraries is taken by a
//! program that is linked with that library.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

use super::build::debian_library;
use super::table::{Job, LIBRARIES, Variant, With};
use crate::program::{Version, Whose, succeeds};

/// What no program can take by its name, and why.
const EXCEPTIONS: &[(&str, &str)] = &[
    ("__urcu_compat_futex_lock", "weak data of the compat_futex functions, which are called"),
    ("__urcu_compat_futex_cond", "weak data of the compat_futex functions, which are called"),
];

/// Names in the dynamic symbol table: with data that was copied into the executable.
fn names(file: &Path, defined_only: bool) -> BTreeSet<String> {
    let mut command = Command::new("nm");
    command.arg("-D").args(defined_only.then_some("--defined-only")).arg(file);
    let text = succeeds(&mut command);
    text.lines().filter_map(|line| line.split_whitespace().last()).map(str::to_owned).collect()
}

/// Those libraries that a program's symbols may be from. What all of them have is in the program's
/// own.
fn linked_with(job: &Job) -> Vec<Variant> {
    if job.program.source == "futex.c" {
        vec![job.variant]
    } else {
        vec![job.variant, Variant::Cds, Variant::Common]
    }
}

/// `library: symbol` for each of a version that no program takes which was compiled for it, or
/// runs with it.
pub(crate) fn not_used<'a>(
    theirs: Version,
    compiled: impl Iterator<Item = (&'a Job, &'a Path)>,
) -> Vec<String> {
    let is_of_version = |job: &Job| match (theirs, job.headers) {
        (Version::V13, Whose::Ours) => job.program.with == With::Both,
        (Version::V13, headers) => headers == Whose::Debians,
        (Version::V15, headers) => headers == Whose::Debian13s,
    };
    let mut wanted: Vec<(Variant, BTreeSet<String>)> = LIBRARIES
        .iter()
        .filter(|library| theirs == Version::V13 || **library != Variant::Signal)
        .map(|&library| (library, names(&debian_library(theirs, &library.name()), true)))
        .collect();
    for (job, program) in compiled.filter(|(job, _)| is_of_version(job)) {
        let used = names(program, false);
        for library in linked_with(job) {
            let of_library = wanted.iter_mut().find(|(each, _)| *each == library).unwrap();
            of_library.1.retain(|symbol| !used.contains(symbol));
        }
    }
    let is_exception = |symbol: &str| EXCEPTIONS.iter().any(|(name, _)| *name == symbol);
    let mut missing = Vec::new();
    for (library, symbols) in wanted {
        for symbol in symbols.iter().filter(|symbol| !is_exception(symbol)) {
            missing.push(format!("liburcu-{}: {symbol}", library.name()));
        }
    }
    missing
}
